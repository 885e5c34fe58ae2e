# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Deep ensemble for uncertainty: all members are loaded, then queried in turns."""
import argparse
import statistics
import torch
import torch.nn as nn


def members(k, depth, width):
    group = []
    for _ in range(k):
        group.append(nn.Sequential(*[nn.Linear(width, width, device="cuda") for _ in range(depth)]))  #@here
        print("member", len(group), flush=True)
    return nn.ModuleList(group)


class Ensemble(nn.Module):
    def __init__(self, k, depth, width, outputs):
        super().__init__()
        self.members = members(k, depth, width)
        self.read = nn.Linear(width, outputs, device="cuda")

    def forward(self, x):
        outs = []
        for m in self.members:
            h = x
            for layer in m:
                h = torch.tanh(layer(h))
            outs.append(self.read(h))
        stack = torch.stack(outs)
        return stack.mean(0), stack.var(0)


class Spread:
    def __init__(self):
        self.values = []

    def add(self, var):
        self.values.append(var.mean().item())

    def median(self):
        return statistics.median(self.values)


@torch.inference_mode()
def query(model, turns, rows, width):
    spread = Spread()
    for t in range(turns):
        mean, var = model(torch.randn(rows, width, device="cuda"))
        spread.add(var)
        print(t, mean.shape[0], spread.median(), flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=30)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    width = 8192 if args.variant == "a" else 9216
    k = max(2, round(8 * args.scale))
    net = Ensemble(k, depth=5, width=width, outputs=16).eval()
    query(net, args.turns, 512, width)
