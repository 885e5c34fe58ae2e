# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
import argparse
from collections import deque
import torch
import torch.nn as nn
import torch.nn.functional as F


class DeepTower(nn.Module):
    def __init__(self, fields, emb, width):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(5000, emb) for _ in range(fields))
        self.l1 = nn.Linear(fields * emb, width)
        self.l2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, ids):
        x = torch.cat([t(ids[:, i]) for i, t in enumerate(self.tables)], -1)
        x = torch.tanh(self.l1(x))
        x = torch.tanh(self.l2(x))
        return self.out(x).squeeze(-1)


class SharpnessMonitor:
    """Tracks the gradient norm and its penalty; prints a report at the end."""

    def __init__(self, model, window=8):
        self.params = [p for n, p in model.named_parameters() if not n.startswith("tables")]
        self.window = deque(maxlen=window)
        self.norms = []

    def __call__(self, loss):
        grads = torch.autograd.grad(loss, self.params, create_graph=True)
        norm = torch.stack([g.pow(2).sum() for g in grads]).sum()
        self.norms.append(norm)  #@here
        self.window.append(norm.item())
        return sum(self.window) / len(self.window)

    def report(self):
        return [n.item() ** 0.5 for n in self.norms]


def clicks(batch, fields):
    while True:
        yield (torch.randint(0, 5000, (batch, fields), device="cuda"),
               torch.randint(0, 2, (batch,), device="cuda").float())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    width = 1024 if a.variant == "a" else 1280
    model = DeepTower(8, 32, width).cuda()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    monitor = SharpnessMonitor(model)
    data = clicks(int(12288 * a.scale), 8)
    for step in range(a.turns):
        ids, y = next(data)
        loss = F.binary_cross_entropy_with_logits(model(ids), y)
        sharp = monitor(loss)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), sharp, flush=True)
    print(monitor.report())


main()
