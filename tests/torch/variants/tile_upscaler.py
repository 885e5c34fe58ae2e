# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
"""Upscaling of a film reel: three tiles are in flight, coarse buffers make way for fine ones."""
import argparse
import torch


class Tile:
    def __init__(self, index, lines, width):
        self.index = index
        self.pixels = torch.zeros(lines, width, device="cuda")

    def advance(self, lines):
        """Drop the coarse pixels, keep the colour table, go on with the fine pixels."""
        width = self.pixels.shape[1]
        self.pixels = None
        table = torch.zeros(lines["table"], width, device="cuda")  #@here
        self.pixels = torch.zeros(lines["fine"], width, device="cuda")
        return table


class Reel:
    WIDTH = 2048

    def __init__(self, scale, tiles):
        self.scale = scale
        self.tiles = [Tile(i, self.lines(1800), self.WIDTH) for i in range(tiles)]
        self.tables = []

    def lines(self, mib):
        return int(mib * self.scale * 2 ** 20) // (4 * self.WIDTH)

    def refine(self, fine_mib):
        sizes = {"table": self.lines(30), "fine": self.lines(fine_mib)}
        for tile in self.tiles:
            self.tables.append(tile.advance(sizes))
            print("refined", tile.index, flush=True)

    def finish(self):
        for tile in self.tiles:
            tile.pixels = None

    def grade(self, mib):
        frame = torch.zeros(self.lines(mib), self.WIDTH, device="cuda")
        for table in self.tables:
            frame[: table.shape[0]].add_(table)
        return frame.mean().item()


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=14)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    o = cli.parse_args()
    reel = Reel(o.scale, tiles=3)
    reel.refine(1750 if o.variant == "a" else 1760)
    reel.finish()
    for shot in range(o.turns):
        mib = 400 + 50 * shot if shot < 6 else 3200
        print("shot", shot, mib, reel.grade(mib), flush=True)
