# SPDX-License-Identifier: Apache-2.0
"""A list of layers, called in a loop, and an embedding that is the last layer's weight, too."""
import truth
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (y.unflatten(2, (4, -1)).transpose(1, 2) for y in self.c_attn(x).chunk(3, 2))
        return self.c_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Words(nn.Module):
    def __init__(self, width=256, layers=4, words=2000):
        super().__init__()
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(words, width), "h": nn.ModuleList([Block(width) for _ in range(layers)]),
                                          "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, words):
        x = self.transformer["wte"](words)
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


model = Words().cuda()
optimizer = torch.optim.AdamW(model.parameters())
words = torch.randint(0, 2000, (8, 128), device="cuda")
for _ in range(2):
    optimizer.zero_grad()
    functional.cross_entropy(model(words).flatten(0, 1), words.flatten()).backward()
    optimizer.step()
kept = model(words)
truth.tell(model)
