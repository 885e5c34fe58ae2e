# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
"""Live captioning: a stream owns a slab of features as long as it is open."""
import argparse
import torch


class Stream:
    def __init__(self, sid, frames, bins):
        self.sid = sid
        self.slab = torch.zeros(frames, bins, device="cuda")  #@here
        self.cursor = 0

    def feed(self, frames):
        end = min(self.cursor + frames, self.slab.shape[0])
        self.slab[self.cursor:end].normal_()
        self.cursor = end


class Hub:
    BINS = 128

    def __init__(self, scale):
        self.frames_per_mib = 2 ** 20 // (4 * self.BINS)
        self.scale = scale
        self.streams = {}

    def frames(self, mib):
        return int(mib * self.scale) * self.frames_per_mib

    def self_test(self):
        probe = torch.zeros(self.frames(5600), self.BINS, device="cuda")
        probe[:: 1000].add_(1.0)
        print("self test", probe[0, 0].item())

    def open(self, n):
        for sid in range(n):
            self.streams[sid] = Stream(sid, self.frames(100), self.BINS)

    def close(self, sids):
        for sid in sids:
            self.streams.pop(sid, None)

    def tick(self, frames=200):
        for s in self.streams.values():
            s.feed(frames)

    def rescore(self, mib):
        lattice = torch.zeros(self.frames(mib), self.BINS, device="cuda")
        for s in self.streams.values():
            lattice[: s.cursor].add_(s.slab[: s.cursor])
        return lattice.shape[0]


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=24)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    a = cli.parse_args()
    keep_every = 3 if a.variant == "a" else 4
    hub = Hub(a.scale)
    hub.self_test()
    hub.open(54)
    for turn in range(a.turns):
        hub.tick()
        if turn == 5:
            hub.close([sid for sid in list(hub.streams) if sid % keep_every])
        if turn > 5:
            print("lattice", hub.rescore(90 if turn < 12 else 2980))
        print(turn, "open", len(hub.streams), flush=True)


main()
