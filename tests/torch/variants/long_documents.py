# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
import argparse
import torch
import torch.nn as nn

WIDTH = 768


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.a = nn.Linear(WIDTH, hidden)
        self.b = nn.Linear(hidden, WIDTH)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


class Library:
    """Documents arrive sorted by length. Each is read twice: boundaries, then vectors."""

    def __init__(self, encoder, scale):
        self.encoder, self.scale = encoder, scale
        self.vectors = {}

    def rows(self, mib):
        return int(mib * self.scale * 2 ** 20) // (4 * WIDTH)

    def boundaries(self, mib):
        tokens = torch.empty(self.rows(mib), WIDTH, device="cuda").normal_()
        marks = self.encoder(tokens[:128])
        return self.rows(0.55 * mib), marks.mean().item()

    def read(self, name, mib):
        passages, _ = self.boundaries(mib)
        vectors = torch.empty(passages, WIDTH, device="cuda")  #@here
        for start in range(0, passages, max(1, passages // 4)):
            vectors[start:start + 128].normal_()
        self.vectors[name] = vectors

    def answer(self, mib):
        pool = torch.empty(self.rows(mib), WIDTH, device="cuda")
        for i, v in enumerate(self.vectors.values()):
            pool[i].copy_(v[0])
        return pool[: len(self.vectors)].argmax().item()


@torch.no_grad()
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=40)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    library = Library(Encoder(512 if a.variant == "a" else 640).cuda(), a.scale)
    for i in range(16):
        library.read(f"doc-{i}", 300 + 12 * i)
        print("read", i, flush=True)
    for q in range(max(0, a.turns - 16)):
        print("question", q, library.answer(60 if q < 5 else 2300), flush=True)


main()
