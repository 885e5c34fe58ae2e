# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
import argparse
import itertools
import torch
import torch.nn as nn
import torch.nn.functional as F


class Forecaster(nn.Module):
    def __init__(self, series, ch, depth, dropout):
        super().__init__()
        self.inp = nn.Conv1d(series, ch, 1)
        self.layers = nn.ModuleList(nn.Conv1d(ch, ch, 3, padding=1) for _ in range(depth))
        self.drop = nn.Dropout(dropout)
        self.out = nn.Conv1d(ch, series, 1)

    def forward(self, x):
        x = self.inp(x)
        for conv in self.layers:
            x = torch.tanh(conv(x))
        return self.out(self.drop(x))


class Search:
    """Tries the grid in order. Finished trials may still be served from this process."""

    def __init__(self, grid):
        self.points = [dict(zip(grid, v)) for v in itertools.product(*grid.values())]
        self.done = []

    def share(self):
        return 1.0 / (1 + len(self.done))

    def run(self, objective, limit):
        for point in self.points[:limit]:
            torch.cuda.set_per_process_memory_fraction(self.share())  #@here
            score = objective(point)
            self.done.append((score, point))
            print(len(self.done), point, score, flush=True)
        return min(self.done, key=lambda d: d[0])


def objective_for(batch, depth, steps=3):
    def objective(point):
        net = Forecaster(16, 128, depth, point["dropout"]).cuda()
        opt = torch.optim.SGD(net.parameters(), lr=point["lr"], momentum=point["momentum"])
        total = 0.0
        for _ in range(steps):
            x = torch.randn(batch, 16, 2048, device="cuda")
            loss = F.mse_loss(net(x)[..., :-1], x[..., 1:])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        return total / steps
    return objective


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=12)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    grid = {"lr": [0.1, 0.03, 0.01], "momentum": [0.0, 0.9], "dropout": [0.0, 0.2]}
    search = Search(grid)
    depth = 10 if a.variant == "a" else 11
    print("best", search.run(objective_for(max(1, int(256 * a.scale)), depth), a.turns))


if __name__ == "__main__":
    main()
