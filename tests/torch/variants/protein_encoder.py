# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Masked residue modelling on full-length chains."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Mix(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.dk = heads, d // heads
        self.norm = nn.LayerNorm(d)
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.o = nn.Linear(d, d)

    def forward(self, x):
        h = self.norm(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, self.dk)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.transpose(-1, -2) * self.dk ** -0.5, dim=-1) @ v  #@here
        return x + self.o(y.transpose(1, 2).flatten(2))


class Feed(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.net(x)


class ResidueEncoder(nn.Module):
    def __init__(self, d, heads, layers, letters=25):
        super().__init__()
        self.letters = nn.Embedding(letters, d)
        body = []
        for _ in range(layers):
            body += [Mix(d, heads), Feed(d)]
        self.body = nn.Sequential(*body)
        self.out = nn.Linear(d, letters)

    def forward(self, ids):
        return self.out(self.body(self.letters(ids)))


def mask_tokens(ids, rate=0.15, token=24):
    hide = torch.rand(ids.shape, device=ids.device) < rate
    return torch.where(hide, torch.full_like(ids, token), ids), torch.where(hide, ids, torch.full_like(ids, 23))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=25)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    layers = 16 if a.variant == "a" else 18
    model = ResidueEncoder(256, 8, layers).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.98))
    batch = max(1, int(4 * a.scale))
    for step in range(a.turns):
        ids, goal = mask_tokens(torch.randint(0, 20, (batch, 2048), device="cuda"))
        loss = F.cross_entropy(model(ids).flatten(0, 1), goal.flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        print(step, loss.item(), flush=True)


main()
