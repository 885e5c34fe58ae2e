# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class SoftMoE(nn.Module):
    """All experts run on all tokens, the gate mixes their outputs."""

    def __init__(self, d, hidden, experts):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(d), nn.Linear(d, experts)
        self.up = nn.ModuleList(nn.Linear(d, hidden) for _ in range(experts))
        self.down = nn.ModuleList(nn.Linear(hidden, d) for _ in range(experts))
        self.shift = nn.Conv1d(d, d, 4, groups=d)

    def forward(self, x):
        h = self.shift(F.pad(self.norm(x).transpose(1, 2), (3, 0))).transpose(1, 2).contiguous()
        g = self.gate(h).softmax(-1)
        for i, (up, down) in enumerate(zip(self.up, self.down)):
            x = x + g[..., i:i + 1] * down(F.relu(up(h)))
        return x


class MoeLM(nn.Module):
    def __init__(self, vocab=16_000, d=512, layers=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.Sequential(*[SoftMoE(d, 2048, 4) for _ in range(layers)])
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.head(self.layers(self.emb(ids)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=40)
    p.add_argument("--steps", type=int, default=3)
    a = p.parse_args()
    model = MoeLM().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for s in range(a.steps):
        ids = torch.randint(0, 16_000, (a.batch_size, 513), device="cuda")
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)


main()
