# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn


class Regressor(nn.Module):
    def __init__(self, inputs=64, hidden=6144, depth=3):
        super().__init__()
        sizes = [inputs] + [hidden] * depth
        self.fcs = nn.ModuleList(nn.Linear(a, b, device="cuda") for a, b in zip(sizes, sizes[1:]))
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(hidden, 1, device="cuda")

    def forward(self, x):
        for fc in self.fcs:
            x = self.drop(torch.relu(fc(x)))
        return self.out(x).squeeze(-1)


@torch.no_grad()
def uncertainty(model, x, samples):
    model.train()  # dropout stays on
    draws = model(x.repeat(samples, 1)).view(samples, len(x))
    return draws.mean(0), draws.std(0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--samples", type=int, default=512)
    p.add_argument("--batches", type=int, default=5)
    a = p.parse_args()
    model = Regressor()
    widest = 0.0
    for b in range(a.batches):
        mean, std = uncertainty(model, torch.randn(256, 64, device="cuda"), a.samples)
        widest = max(widest, std.max().item())
        print(b, mean.mean().item(), widest, flush=True)


main()
