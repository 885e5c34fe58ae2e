# SPDX-License-Identifier: Apache-2.0
# label: growth
"""Scoring of prompts of many lengths with ALiBi attention."""
import argparse
import functools
import math

import torch
import torch.nn as nn

HEADS = 16


@functools.lru_cache(maxsize=None)  #@here
def alibi_bias(length, heads, device):
    pos = torch.arange(length, device=device)
    dist = (pos[None, :] - pos[:, None]).abs().float()
    slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)], device=device)
    return -dist[None] * slopes[:, None, None]


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)

    def forward(self, x):
        t = x.shape[0]
        q, k, v = self.qkv(x).view(t, 3, HEADS, self.d // HEADS).permute(1, 2, 0, 3)
        scores = torch.baddbmm(alibi_bias(t, HEADS, x.device), q, k.transpose(1, 2), alpha=0.125)
        y = torch.bmm(torch.softmax(scores, -1), v)
        return self.out(y.transpose(0, 1).reshape(t, self.d))


class Scorer(nn.Module):
    def __init__(self, d, layers, vocab=8000):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.att = nn.ModuleList(Attention(d) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(layers))
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for att, mlp in zip(self.att, self.mlp):
            x = x + att(x)
            x = x + mlp(x)
        return self.head(x)


def prompts(n, base):
    """Lengths as they come from the log: no two days are alike."""
    for i in range(n):
        yield base + 3 * i if i % 2 else base - 2 * i


@torch.inference_mode()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    base = int(1950 * math.sqrt(args.scale))
    model = Scorer(512 if args.variant == "a" else 768, layers=4).cuda().eval()
    for i, length in enumerate(prompts(args.turns, base)):
        ids = torch.randint(0, 8000, (length,), device="cuda")
        nll = torch.nn.functional.cross_entropy(model(ids)[:-1], ids[1:])
        print(i, length, nll.item(), flush=True)


if __name__ == "__main__":
    main()
