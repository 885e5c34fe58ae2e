# SPDX-License-Identifier: Apache-2.0
"""Density estimation with affine couplings."""
import argparse
import math
import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, dim))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        shift, scale = self.net(a).chunk(2, 1)
        scale = torch.tanh(scale)
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], 1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=64, hidden=512, layers=16):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dim, hidden, i % 2 == 1) for i in range(layers))

    def log_prob(self, x):
        total = 0.0
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return total - 0.5 * x.pow(2).sum(1) - 0.5 * x.shape[1] * math.log(2 * math.pi)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=131_072)
    ap.add_argument("--steps", type=int, default=4)
    args = ap.parse_args()
    flow = Flow().cuda()
    opt = torch.optim.AdamW(flow.parameters(), lr=1e-3)
    for s in range(args.steps):
        x = torch.randn(args.batch_size, 64, device="cuda")
        loss = -flow.log_prob(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)
