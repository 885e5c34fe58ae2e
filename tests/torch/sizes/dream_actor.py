# SPDX-License-Identifier: Apache-2.0
"""Actor training in imagination: gradients flow through the whole horizon."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class World(nn.Module):
    def __init__(self, state=1024, action=8, width=512):
        super().__init__()
        self.inp = nn.Linear(state + action, width)
        self.cell = nn.GRUCell(width, state)
        self.reward = nn.Linear(state, 1)

    def forward(self, h, a):
        h = self.cell(F.elu(self.inp(torch.cat([h, a], 1))), h)
        return h, self.reward(h).squeeze(1)


class Actor(nn.Module):
    def __init__(self, state=1024, action=8, width=512):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(state, width), nn.ELU(), nn.Linear(width, action), nn.Tanh())

    def forward(self, h):
        return self.net(h)


def imagine(world, actor, h, horizon, gamma=0.99):
    total = 0.0
    for t in range(horizon):
        h, r = world(h, actor(h))
        total = total + gamma ** t * r
    return total.mean()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--num-envs", type=int, default=22_000)
    p.add_argument("--updates", type=int, default=3)
    a = p.parse_args()
    world, actor = World().cuda().requires_grad_(False), Actor().cuda()
    opt = torch.optim.Adam(actor.parameters(), lr=1e-4)
    for u in range(a.updates):
        start = torch.randn(a.num_envs, 1024, device="cuda")
        loss = -imagine(world, actor, start, horizon=15)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(u, loss.item(), flush=True)
