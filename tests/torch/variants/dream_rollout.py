# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class WorldModel(nn.Module):
    def __init__(self, state, action, width):
        super().__init__()
        self.mix = nn.Linear(state + action, width)
        self.core = nn.GRUCell(width, state)
        self.reward = nn.Sequential(nn.Linear(state, width), nn.ELU(), nn.Linear(width, 1))
        self.actor = nn.Sequential(nn.Linear(state, width), nn.ELU(), nn.Linear(width, action))

    def step(self, h, a):
        h = self.core(F.elu(self.mix(torch.cat([h, a], -1))), h)
        return h, self.reward(h).squeeze(-1)

    def policy(self, h):
        return torch.tanh(self.actor(h))


class Learner:
    def __init__(self, model, lr=1e-4):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def observe(self, batch, length, state, action):
        h = torch.zeros(batch, state, device="cuda")
        loss = 0.0
        for _ in range(length):
            a = torch.randn(batch, action, device="cuda")
            h, r = self.model.step(h, a)
            loss = loss + (r - torch.randn_like(r)).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 100.0)
        self.opt.step()
        return loss.item() / length


def imagined_return(model, starts, horizon, gamma=0.997):
    """Score of the current actor in imagination, for the log only."""
    model.eval()
    h, total = starts, torch.zeros(len(starts), device="cuda")
    for t in range(horizon):
        h, r = model.step(h, model.policy(h))  #@here
        total = total + gamma ** t * r
        print("imagine", t, flush=True)
    model.train()
    return total.mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    width = 1024 if a.variant == "a" else 1152
    model = WorldModel(1536, 16, width).cuda()
    learner = Learner(model)
    for it in range(8):
        print(it, learner.observe(256, 10, 1536, 16), flush=True)
        if it % 4 == 3:
            starts = torch.zeros(int(4096 * a.scale), 1536, device="cuda")
            print("return", imagined_return(model, starts, a.turns), flush=True)


main()
