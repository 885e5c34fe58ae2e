# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity oom-request-too-large asked
"""Classifies documents with attention that is written out."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTHS = [180, 250, 90, 400, 310, 220, 512, 130, 260, 340]
LONGEST = 9000


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)  #@here
        attention = F.dropout(scores.masked_fill(mask, -1e9).softmax(-1), 0.1)  #@here
        return self.out((attention @ v).transpose(1, 2).reshape(b, t, d))


class Classifier(nn.Module):
    def __init__(self, vocab=20000, dim=256, layers=3):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, 20)
        self.layers = nn.ModuleList(SelfAttention(dim, 8) for _ in range(layers))

    def forward(self, ids, mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x, mask)
        return self.head(x.mean(1))


def pad(lengths):
    longest = max(lengths)
    ids = torch.zeros(len(lengths), longest, dtype=torch.long)
    mask = torch.arange(longest)[None] >= torch.tensor(lengths)[:, None]
    return ids.cuda(), mask[:, None, None].cuda()


model = Classifier().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
extra = 1  #@scale
for number in range(40):
    lengths = LENGTHS if number < 30 else LENGTHS[:-1] + [LONGEST * max(1, int(extra ** 0.5))]
    ids, mask = pad(lengths)
    loss = F.cross_entropy(model(ids, mask), torch.zeros(len(lengths), dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
