# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity asked
"""Pretrains a small vision transformer with gradient accumulation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

MICRO_BATCH = 3072  #@scale
ACCUMULATE = 4


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), nn.MultiheadAttention(dim, 8, batch_first=True)
        self.norm2, self.ff = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, dim=384, depth=6, patches=64, classes=1000):
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, dim, 8, stride=8), nn.Parameter(torch.zeros(1, patches, dim))
        self.blocks, self.head = nn.Sequential(*[Block(dim) for _ in range(depth)]), nn.Linear(dim, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.blocks(x).mean(1))  #@forward


def main():
    model = ViT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(100):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(ACCUMULATE):
            images = torch.rand(MICRO_BATCH, 3, 64, 64, device="cuda")
            labels = torch.randint(0, 1000, (MICRO_BATCH,), device="cuda")
            loss = F.cross_entropy(model(images), labels) / ACCUMULATE  #@forward
            loss.backward()
        optimizer.step()


main()
