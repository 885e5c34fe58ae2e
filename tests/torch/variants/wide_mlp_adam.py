# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Tabular foundation model: many wide residual layers, trained with Adam."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class WideLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x + self.gain * F.relu(self.fc(x))


class TabModel(nn.Module):
    def __init__(self, columns, width, depth, targets):
        super().__init__()
        self.inp = nn.Linear(columns, width)
        self.layers = nn.ModuleList(WideLayer(width) for _ in range(depth))
        self.out = nn.Linear(width, targets)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


class Loop:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / 20))

    def forward_backward(self, rows, columns):
        x = torch.randn(rows, columns, device="cuda")
        y = torch.randint(0, 12, (rows,), device="cuda")
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss.item()

    def step(self):
        self.opt.step()  #@here
        self.sched.step()
        self.opt.zero_grad(set_to_none=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--variant", choices=["a", "b"], default="a")
    a = parser.parse_args()
    depth = round(36 * a.scale)
    columns = 200 if a.variant == "a" else 333
    with torch.device("cuda"):
        model = TabModel(columns, 4096, depth, 12)
    n = sum(p.numel() for p in model.parameters())
    print(f"{n / 1e6:.0f}M parameters")
    loop = Loop(model, 1e-4)
    for step in range(a.turns):
        loss = loop.forward_backward(128, columns)
        loop.step()
        print(step, loss, flush=True)


main()
