# SPDX-License-Identifier: Apache-2.0
"""Click prediction with many small tables and a wide top network."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Dlrm(nn.Module):
    def __init__(self, fields=26, rows=20_000, dim=64, dense=13, width=2048, depth=8):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for _ in range(fields))
        self.bottom = nn.Linear(dense, dim)
        sizes = [(fields + 1) * dim] + [width] * depth
        self.top = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, dense, sparse):
        x = torch.cat([self.bottom(dense)] + [t(sparse[i]) for i, t in enumerate(self.tables)], 1)
        for fc in self.top:
            x = F.relu(fc(x))
        return self.out(x).squeeze(1)


def train(batch_size, steps):
    model = Dlrm().cuda()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for s in range(steps):
        dense = torch.randn(batch_size, 13, device="cuda")
        sparse = torch.randint(0, 20_000, (26, batch_size), device="cuda")
        click = torch.randint(0, 2, (batch_size,), device="cuda").float()
        loss = F.binary_cross_entropy_with_logits(model(dense, sparse), click)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--batch-size", type=int, default=160_000)
    cli.add_argument("--steps", type=int, default=3)
    args = cli.parse_args()
    train(args.batch_size, args.steps)
