# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Generation engine with key/value memory reserved when the engine starts."""
import argparse
from dataclasses import dataclass
import torch
import torch.nn as nn


@dataclass
class EngineConfig:
    layers: int = 24
    heads: int = 16
    head_dim: int = 64
    context: int = 4096
    slots: int = 32
    vocab: int = 32000

    @property
    def width(self):
        return self.heads * self.head_dim


class StaticCache:
    def __init__(self, c):
        self.k, self.v = [], []
        shape = (c.slots, c.heads, c.context, c.head_dim)
        for _ in range(c.layers):
            for side in (self.k, self.v):
                side.append(torch.zeros(shape, dtype=torch.float16, device="cuda"))  #@here
        self.lengths = [0] * c.slots

    def write(self, layer, slot, at, k, v):
        self.k[layer][slot, :, at:at + k.shape[1]] = k
        self.v[layer][slot, :, at:at + v.shape[1]] = v
        end = at + k.shape[1]
        return self.k[layer][slot, :, :end], self.v[layer][slot, :, :end]


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.qkv = nn.Linear(c.width, 3 * c.width)
        self.o = nn.Linear(c.width, c.width)

    def forward(self, x, cache, layer, slot, at):
        q, k, v = self.qkv(x).view(-1, 3, self.c.heads, self.c.head_dim).permute(1, 2, 0, 3)
        k, v = cache.write(layer, slot, at, k, v)
        w = torch.softmax(q @ k.transpose(1, 2) * self.c.head_dim ** -0.5, -1)
        return x + self.o((w @ v).transpose(0, 1).flatten(1))


class Engine:
    def __init__(self, c):
        self.c = c
        with torch.device("cuda"):
            self.emb = nn.Embedding(c.vocab, c.width).half()
            self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers)).half()
        self.cache = StaticCache(c)

    @torch.no_grad()
    def step(self, slot, tokens):
        x = self.emb(torch.randint(0, self.c.vocab, (tokens,), device="cuda"))
        for i, b in enumerate(self.blocks):
            x = b(x, self.cache, i, slot, self.cache.lengths[slot])
        self.cache.lengths[slot] += tokens
        return x[-1].argmax().item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    cfg = EngineConfig(slots=max(1, round(32 * a.scale)), layers=24 if a.variant == "a" else 22)
    engine = Engine(cfg)
    for t in range(a.turns):
        print(t, engine.step(t % cfg.slots, 64), flush=True)
