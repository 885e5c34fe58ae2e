# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""Heat equation surrogate with a data head and a boundary head over one trunk."""
import argparse
import torch
import torch.nn as nn


class Trunk(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [3] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, z):
        for layer in self.layers:
            z = torch.tanh(layer(z))
        return z


class Surrogate(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.trunk = Trunk(width, depth)
        self.interior = nn.Linear(width, 1)
        self.boundary = nn.Linear(width, 1)

    def forward(self, z):
        h = self.trunk(z)
        return self.interior(h), self.boundary(h)


class Curve:
    def __init__(self):
        self.points = []

    def add(self, step, value):
        self.points.append((step, value))  #@here

    def tail(self, n=5):
        return [round(float(v), 5) for _, v in self.points[-n:]]


class Fit:
    def __init__(self, width, depth, points):
        self.net = Surrogate(width, depth).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.points = points
        self.curve = Curve()

    def batch(self):
        z = torch.rand(self.points, 3, device="cuda")
        u = torch.sin(z[:, :1]) * torch.exp(-z[:, 2:])
        return z, u

    def step(self, i):
        z, u = self.batch()
        inner, edge = self.net(z)
        fit_loss = (inner - u).pow(2).mean()
        edge_loss = (edge - u).abs().mean()
        self.opt.zero_grad()
        fit_loss.backward(retain_graph=True)
        (0.1 * edge_loss).backward(retain_graph=True)
        self.opt.step()
        self.curve.add(i, fit_loss + 0.1 * edge_loss)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    depth = 6 if a.variant == "a" else 7
    fit = Fit(256, depth, int(40_000 * a.scale))
    for i in range(a.turns):
        fit.step(i)
        if i % 5 == 4:
            print(i, fit.curve.tail(), flush=True)


main()
