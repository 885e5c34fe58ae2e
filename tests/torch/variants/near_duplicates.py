# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
"""Embed a picture collection in batches and report near duplicates."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Hasher(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 4, stride=4)
        self.fc = nn.Linear(16 * 64, dim)

    def forward(self, x):
        return F.normalize(self.fc(F.relu(self.conv(x)).flatten(1)), dim=1)


class Collection:
    def __init__(self, pictures, batch):
        self.pictures, self.batch = pictures, batch

    def __iter__(self):
        done = 0
        while done < self.pictures:
            n = min(self.batch, self.pictures - done)
            yield torch.rand(n, 3, 32, 32, device="cuda")
            done += n


class Duplicates:
    def __init__(self, threshold):
        self.threshold = threshold
        self.parts = []

    def add(self, feats):
        self.parts.append(feats)

    def within_batch(self, feats):
        sims = feats[:1024] @ feats[:1024].t()
        return (sims > 1 - self.threshold).sum().item() - min(1024, len(feats))

    def report(self):
        feats = torch.cat(self.parts)
        near = torch.cdist(feats, feats) < self.threshold  #@here
        return near.triu(1).sum().item()


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=12)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    dim = 64 if args.variant == "a" else 96
    pictures = int(110_000 * args.scale)
    net, dup = Hasher(dim).cuda().eval(), Duplicates(0.1)
    for i, batch in enumerate(Collection(pictures, -(-pictures // args.turns))):
        feats = net(batch)
        dup.add(feats)
        print("batch", i, dup.within_batch(feats), flush=True)
    print("pairs", dup.report())


main()
