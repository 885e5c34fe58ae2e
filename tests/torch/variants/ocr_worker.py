# SPDX-License-Identifier: Apache-2.0
# label: growth
"""OCR service: pages in, text out; pages that cannot be read are retried at night."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class UnreadablePage(Exception):
    pass


class Backbone(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.c1 = nn.Conv2d(1, ch, 3, stride=2, padding=1)
        self.c2 = nn.Conv2d(ch, ch, 3, stride=2, padding=1)
        self.head = nn.Linear(ch, 96)

    def features(self, page):
        return F.relu(self.c2(F.relu(self.c1(page))))

    def forward(self, lines):
        return self.head(lines)


class Page:
    def __init__(self, number, tiles, height, width):
        self.number, self.tiles, self.size = number, tiles, (height, width)
        self.skew = (number * 7) % 10

    def pixels(self):
        return torch.rand(self.tiles, 1, *self.size, device="cuda")


class Worker:
    def __init__(self, ch, recent=4):
        self.model = Backbone(ch).cuda().eval()
        self.recent = recent
        self.thumbs = []
        self.retry = []

    @torch.no_grad()
    def read(self, page):
        pixels = page.pixels()
        feats = self.model.features(pixels)
        self.thumbs = (self.thumbs + [F.avg_pool2d(pixels, 2)])[-self.recent:]
        if page.skew > 3:
            raise UnreadablePage(f"page {page.number} skew {page.skew}")
        lines = feats.mean(2).transpose(1, 2)
        return self.model(lines).argmax(-1).tolist()

    def handle(self, page):
        try:
            return len(self.read(page))
        except UnreadablePage as err:
            self.retry.append((page.number, err))  #@here
            return 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    worker = Worker(32 if a.variant == "a" else 36)
    tiles = max(1, int(32 * a.scale))
    for n in range(a.turns):
        got = worker.handle(Page(n, tiles, 1024, 768))
        print(n, got, len(worker.retry), flush=True)


if __name__ == "__main__":
    main()
