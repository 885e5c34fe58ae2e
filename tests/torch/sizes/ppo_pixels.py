# SPDX-License-Identifier: Apache-2.0
"""PPO with the whole rollout on the device."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(4, 16, 8, stride=4), nn.Conv2d(16, 32, 4, stride=2)
        self.fc = nn.Linear(32 * 81, 256)
        self.pi, self.v = nn.Linear(256, actions), nn.Linear(256, 1)

    def forward(self, x):
        h = F.relu(self.fc(F.relu(self.c2(F.relu(self.c1(x)))).flatten(1)))
        return F.log_softmax(self.pi(h), -1), self.v(h).squeeze(1)


class Rollout:
    def __init__(self, length, envs):
        self.obs = torch.zeros(length, envs, 4, 84, 84, device="cuda")
        self.logp = torch.zeros(length, envs, device="cuda")
        self.act = torch.zeros(length, envs, dtype=torch.long, device="cuda")
        self.adv = torch.zeros(length, envs, device="cuda")


def collect(net, roll):
    with torch.no_grad():
        for t in range(len(roll.obs)):
            roll.obs[t].uniform_()
            logp, value = net(roll.obs[t])
            gumbel = -torch.log(-torch.log(torch.rand_like(logp)))
            roll.act[t] = (logp + gumbel).argmax(-1)
            roll.logp[t] = logp.gather(1, roll.act[t][:, None]).squeeze(1)
            roll.adv[t] = torch.randn_like(value) - value


def improve(net, opt, roll, clip=0.2):
    total = 0.0
    for t in range(len(roll.obs)):
        logp, value = net(roll.obs[t])
        ratio = (logp.gather(1, roll.act[t][:, None]).squeeze(1) - roll.logp[t]).exp()
        surrogate = torch.minimum(ratio * roll.adv[t], ratio.clamp(1 - clip, 1 + clip) * roll.adv[t])
        loss = -surrogate.mean() + 0.5 * value.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--num-envs", type=int, default=6144)
    p.add_argument("--updates", type=int, default=3)
    a = p.parse_args()
    net = ActorCritic().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=2.5e-4)
    roll = Rollout(16, a.num_envs)
    for u in range(a.updates):
        collect(net, roll)
        print(u, improve(net, opt, roll), flush=True)


main()
