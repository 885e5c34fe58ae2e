# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Image and text towers, trained with a contrastive loss. Neither has a forward()."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Towers(nn.Module):
    def __init__(self, d=512, layers=12):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 16, stride=16)
        self.vision = nn.ModuleList(Block(d, 8) for _ in range(layers))
        self.token = nn.Embedding(20000, d)
        self.text = nn.ModuleList(Block(d, 8) for _ in range(layers // 2))
        self.scale = nn.Parameter(torch.tensor(2.6))

    def encode_image(self, pixels):
        x = self.patch(pixels).flatten(2).transpose(1, 2)
        for block in self.vision:
            x = block(x)  #@here
        return F.normalize(x.mean(1), dim=-1)

    def encode_text(self, ids):
        x = self.token(ids)
        for block in self.text:
            x = block(x)
        return F.normalize(x[:, 0], dim=-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    model = Towers(layers=12 if a.variant == "a" else 16).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    n = int(128 * a.scale)
    for step in range(20):
        images = torch.rand(n, 3, 224, 224, device="cuda")
        ids = torch.randint(0, 20000, (n, 77), device="cuda")
        logits = model.scale.exp() * model.encode_image(images) @ model.encode_text(ids).t()
        target = torch.arange(n, device="cuda")
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)


main()
