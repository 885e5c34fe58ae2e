# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class SoftEmbedding(nn.Module):
    """Embedding as a matrix product, so that mixtures of words can be fed as well."""

    def __init__(self, vocab, dim):
        super().__init__()
        self.vocab = vocab
        self.weight = nn.Parameter(torch.randn(vocab, dim) * 0.02)

    def forward(self, ids):
        return F.one_hot(ids, self.vocab).float() @ self.weight  #@here


class Classifier(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.emb = SoftEmbedding(vocab, dim)
        self.gate = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, classes)

    def forward(self, ids):
        x = self.emb(ids)
        x = self.norm(x * torch.sigmoid(self.gate(x)))
        return self.out(x.max(1).values)


class Lines:
    """Log lines; the nightly dump comes as one long batch."""

    def __init__(self, turns, batch, length, vocab):
        self.turns, self.batch, self.length, self.vocab = turns, batch, length, vocab

    def __iter__(self):
        for t in range(self.turns):
            n, length = (8, 64) if t < 4 else (self.batch, self.length)
            yield (torch.randint(0, self.vocab, (n, length), device="cuda"),
                   torch.randint(0, 5, (n,), device="cuda"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=20)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    vocab = 50_000 if a.variant == "a" else 46_000
    model = Classifier(vocab, 128, 5).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    scores = []
    for i, (ids, y) in enumerate(Lines(a.turns, max(1, int(64 * a.scale)), 1024, vocab)):
        loss = F.cross_entropy(model(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        scores.append(loss.item())
        print(i, sum(scores[-5:]) / len(scores[-5:]), flush=True)


main()
