# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
import argparse
import torch

DIM = 256
MIB_ROWS = 2 ** 20 // (DIM * 4)


class InvertedLists:
    """Vector index: shards are assigned to cells, then one list per shard is filled."""

    def __init__(self, cells, scale):
        self.centroids = torch.randn(cells, DIM, device="cuda")
        self.scale = scale
        self.lists = []

    def _rows(self, mib):
        return int(mib * self.scale) * MIB_ROWS

    def _survivors(self, shard):
        """How many vectors of the shard are left after the duplicates are dropped."""
        raw = torch.empty(self._rows(400), DIM, device="cuda").normal_()
        raw.sub_(self.centroids[shard % len(self.centroids)])
        return self._rows(210)

    def add_shard(self, shard):
        n = self._survivors(shard)
        stored = torch.empty(n, DIM, device="cuda")  #@here
        stored.normal_()
        self.lists.append(stored)

    def build(self, shards):
        for s in range(shards):
            self.add_shard(s)
            print("shard", s, "vectors", sum(len(x) for x in self.lists), flush=True)

    def search(self, mib, k=10):
        table = torch.empty(self._rows(mib), DIM, device="cuda")
        best = []
        for stored in self.lists:
            rows = stored[:k] @ self.centroids.t()
            best.append(rows.argmin(1))
        table[: k].zero_()
        return torch.stack(best).sum().item()


class Traffic:
    def __init__(self, turns):
        self.turns = turns

    def __iter__(self):
        for t in range(self.turns):
            yield 20 + 30 * min(t, 5) if t < 9 else 2048


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    index = InvertedLists(256 if a.variant == "a" else 512, a.scale)
    index.build(17)
    for t, mib in enumerate(Traffic(a.turns)):
        print("query", t, index.search(mib), flush=True)
