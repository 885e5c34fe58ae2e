# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
import argparse
from dataclasses import dataclass, field
import torch
import torch.nn as nn


@dataclass
class ServiceConfig:
    layers: int = 12
    width: int = 1024
    block: int = 64
    blocks: int = 768
    gpu_share: float = 0.45
    stop_words: tuple = field(default=(0, 2))


class Pool:
    """All blocks of keys and values, given out to conversations and taken back."""

    def __init__(self, cfg):
        shape = (cfg.blocks, cfg.block, 2, cfg.width)
        self.layers = []
        for _ in range(cfg.layers):
            self.layers.append(torch.empty(shape, device="cuda"))
        self.free = list(range(cfg.blocks))

    def take(self, n):
        got, self.free = self.free[:n], self.free[n:]
        return got

    def give(self, blocks):
        self.free.extend(blocks)


class Service:
    def __init__(self, cfg):
        self.cfg = cfg
        # leave room for the embedding service next door
        torch.cuda.set_per_process_memory_fraction(cfg.gpu_share, 0)  #@here
        with torch.device("cuda"):
            self.proj = nn.ModuleList(nn.Linear(cfg.width, 2 * cfg.width) for _ in range(cfg.layers))
        self.pool = Pool(cfg)
        self.active = {}

    @torch.no_grad()
    def prefill(self, conversation, tokens):
        need = -(-tokens // self.cfg.block)
        blocks = self.pool.take(need)
        x = torch.randn(need * self.cfg.block, self.cfg.width, device="cuda")
        for proj, layer in zip(self.proj, self.pool.layers):
            kv = proj(x).view(need, self.cfg.block, 2, self.cfg.width)
            for j, b in enumerate(blocks):
                layer[b].copy_(kv[j])
        self.active[conversation] = blocks
        return x[-1].argmax().item()

    def hang_up(self, conversation):
        self.pool.give(self.active.pop(conversation))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    cfg = ServiceConfig(blocks=int(768 * a.scale), layers=12 if a.variant == "a" else 13)
    service = Service(cfg)
    for t in range(a.turns):
        word = service.prefill(t, 256 + 64 * (t % 3))
        if t >= 4:
            service.hang_up(t - 4)
        print(t, word, len(service.pool.free), flush=True)


main()
