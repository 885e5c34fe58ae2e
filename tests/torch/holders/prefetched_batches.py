# SPDX-License-Identifier: Apache-2.0
# keeps: prefetcher.ready
# keeps: prefetcher.ready[*].x
# keeps: prefetcher.ready[*]['x']
# keeps: prefetcher.ready[*].tensors['x']
# keeps: prefetcher.ready[*].tensors[*]
import dataclasses
import weakref

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


@dataclasses.dataclass(eq=False)
class Batch:
    tensors: dict
    size: int = 4


class Prefetcher:
    def __init__(self):
        self.seen = weakref.WeakSet()
        self.ready = []

    def fill(self):
        while True:
            batch = Batch({"x": big(), "y": torch.zeros(4, device="cuda")})
            self.seen.add(batch)
            self.ready.append(batch)


def main():
    prefetcher = Prefetcher()
    prefetcher.fill()


main()
