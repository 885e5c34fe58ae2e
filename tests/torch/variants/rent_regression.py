# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
"""Rent prediction from tabular rows; R2 over all rows is reported now and then."""
import argparse
import torch
import torch.nn as nn


class Rents(nn.Module):
    def __init__(self, columns, hidden):
        super().__init__()
        self.a = nn.Linear(columns, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))))


class Table:
    def __init__(self, rows, columns):
        self.x = torch.randn(rows, columns, device="cuda")
        self.y = torch.randn(rows, device="cuda")

    def batches(self, size):
        for start in range(0, len(self.x), size):
            yield self.x[start:start + size], self.y[start:start + size]


def train_epoch(model, opt, table, size, limit):
    total = 0.0
    for i, (x, y) in enumerate(table.batches(size)):
        if i == limit:
            break
        loss = nn.functional.huber_loss(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total


@torch.no_grad()
def r2(model, table):
    predictions = torch.cat([model(x) for x, _ in table.batches(4096)])
    errors = table.y - predictions  #@here
    spread = table.y - table.y.mean()
    return 1 - (errors.pow(2).sum() / (spread.pow(2).sum() + 1e-9)).item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=20)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    args = p.parse_args()
    table = Table(int(80_000 * args.scale), 40)
    net = Rents(40, 256 if args.variant == "a" else 320).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    best = []
    for epoch in range(args.turns):
        loss = train_epoch(net, opt, table, 2048, limit=5)
        best.append(loss)
        if epoch % 5 == 4:
            print("r2", r2(net, table))
        print(epoch, min(best), flush=True)
