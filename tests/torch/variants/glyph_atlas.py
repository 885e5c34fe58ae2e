# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
import argparse
from collections import OrderedDict
import torch


class Atlas:
    """Rendered font pages, least recently used pages go first, pinned pages stay."""

    def __init__(self, rows, cols=1024):
        self.shape = (rows, cols)
        self.pages = OrderedDict()
        self.pinned = set()

    def get(self, key):
        if key not in self.pages:
            self.pages[key] = torch.zeros(self.shape, device="cuda")  #@here
        self.pages.move_to_end(key)
        return self.pages[key]

    def pin(self, key):
        self.pinned.add(key)

    def shrink(self, limit):
        for key in list(self.pages):
            if len(self.pages) <= limit:
                break
            if key not in self.pinned:
                del self.pages[key]

    def bytes(self):
        return sum(p.numel() * 4 for p in self.pages.values())


class Renderer:
    def __init__(self, atlas):
        self.atlas = atlas

    def typeset(self, first, n):
        for key in range(first, first + n):
            self.atlas.get(key).fill_(0.5)
            if key % 4 == 0:
                self.atlas.pin(key)

    def poster(self, mib):
        canvas = torch.zeros(int(mib * 2 ** 20) // 4096, 1024, device="cuda")
        page = next(iter(self.atlas.pages.values()))
        canvas[: page.shape[0]].add_(page)
        return canvas.shape[0]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=18)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    total = int(1320 * args.scale)
    atlas = Atlas(rows=1280 if args.variant == "a" else 1264)
    renderer = Renderer(atlas)
    per_turn = total // 10
    for turn in range(args.turns):
        if turn < 10:
            renderer.typeset(turn * per_turn, per_turn)
        elif turn == 10:
            atlas.shrink(total // 4)
        else:
            print("poster rows", renderer.poster(8 if turn < 15 else 2250 * args.scale))
        print(turn, len(atlas.pages), atlas.bytes() >> 20, "MiB", flush=True)
