# SPDX-License-Identifier: Apache-2.0
"""Masked language modelling, gradients accumulated over two micro-batches."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, d, heads, p):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.n1, self.n2, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(p)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        w = self.drop(torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1))
        x = self.n1(x + self.drop(self.o((w @ v).transpose(1, 2).reshape(b, t, d))))
        return self.n2(x + self.drop(self.ff(x)))


class Bert(nn.Module):
    def __init__(self, vocab=8000, d=768, layers=4):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, d), nn.Embedding(512, d)
        self.layers = nn.Sequential(*[Layer(d, 12, 0.1) for _ in range(layers)])
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.head(self.layers(self.emb(ids) + self.pos.weight))


def micro_batch(n):
    ids = torch.randint(0, 8000, (n, 512), device="cuda")
    hidden = torch.rand(n, 512, device="cuda") < 0.15
    return torch.where(hidden, torch.full_like(ids, 3), ids), ids


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--steps", type=int, default=3)
    a = p.parse_args()
    model = Bert().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for s in range(a.steps):
        total = 0.0
        for _ in range(2):
            x, y = micro_batch(a.batch_size)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / 2
            loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad()
        print(s, total, flush=True)


main()
