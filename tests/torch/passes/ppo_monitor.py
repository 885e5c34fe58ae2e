# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""PPO on stacked frames; what is shown in the end is collected on the way."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, actions, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(),
                                  nn.Linear(64 * 81, width), nn.ReLU())
        self.pi, self.v = nn.Linear(width, actions), nn.Linear(width, 1)

    def evaluate(self, obs):
        h = self.body(obs)
        return F.log_softmax(self.pi(h), -1), self.v(h).squeeze(-1)


class PPO:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), lr=3e-4)
        self.curves = {"policy": [], "value": [], "kl": []}

    @torch.no_grad()
    def collect(self, n, steps):
        obs = torch.rand(steps, n, 4, 84, 84, device="cuda")
        old = [self.net.evaluate(o)[0] for o in obs]
        return obs, torch.stack(old), torch.randn(steps, n, device="cuda")

    def update(self, obs, old, ret):
        for o, q, r in zip(obs, old, ret):
            logp, value = self.net.evaluate(o)
            a = q.exp().argmax(-1, keepdim=True)
            ratio = (logp.gather(1, a) - q.gather(1, a)).exp().squeeze(1)
            policy = -torch.min(ratio * r, ratio.clamp(0.8, 1.2) * r).mean()
            value = F.mse_loss(value, r)
            self.opt.zero_grad()
            (policy + 0.5 * value).backward()
            self.opt.step()
            after, _ = self.net.evaluate(o)
            self.curves["kl"].append((q.exp() * (q - after)).sum(-1).mean())  #@here
            self.curves["value"].append(value.item())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    job = PPO(ActorCritic(6, 512 if a.variant == "a" else 768).cuda())
    for it in range(200):
        job.update(*job.collect(int(256 * a.scale), 4))
        print("iteration", it, job.curves["value"][-1], flush=True)


main()
