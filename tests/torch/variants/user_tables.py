# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Two-tower retrieval with one large id table."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Towers(nn.Module):
    def __init__(self, ids, dim, out):
        super().__init__()
        self.ids = nn.Embedding(ids, dim, device="cuda")
        self.query = nn.Linear(dim, out, device="cuda")
        self.item = nn.Linear(dim, out, device="cuda")

    def forward(self, q, i):
        q = F.normalize(self.query(self.ids(q).mean(1)), dim=-1)
        i = F.normalize(self.item(self.ids(i)), dim=-1)
        return q @ i.t() / 0.05


class Popularity:
    """Sampling correction of the in-batch negatives (decayed counts per bucket)."""

    def __init__(self, buckets=65536):
        self.counts = torch.ones(buckets, device="cuda")

    def correct(self, logits, items):
        slot = items % len(self.counts)
        self.counts.mul_(0.999).index_add_(0, slot, torch.ones_like(slot, dtype=torch.float32))
        return logits - torch.log(self.counts[slot] + 1)[None]


class Retrieval:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)
        self.pop = Popularity()

    def train(self, q, i):
        self.opt.zero_grad(set_to_none=True)
        logits = self.pop.correct(self.model(q, i), i)
        loss = F.cross_entropy(logits, torch.arange(len(i), device="cuda"))
        loss.backward()  #@here
        self.opt.step()
        return loss.item()


def log_lines(turns, batch, history, ids):
    for _ in range(turns):
        yield (torch.randint(0, ids, (batch, history), device="cuda"),
               torch.randint(0, ids, (batch,), device="cuda"))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=30)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    ids = int(20_000_000 * a.scale)
    job = Retrieval(Towers(ids, 64, 128 if a.variant == "a" else 96), lr=0.1)
    history = 10 if a.variant == "a" else 16
    for t, (q, i) in enumerate(log_lines(a.turns, 2048, history, ids)):
        print(t, job.train(q, i), flush=True)


main()
