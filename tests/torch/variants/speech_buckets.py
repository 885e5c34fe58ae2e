# SPDX-License-Identifier: Apache-2.0
# label: capacity
import argparse
from collections import OrderedDict
import torch
import torch.nn as nn
import torch.nn.functional as F


class SpeechNet(nn.Module):
    def __init__(self, ch, depth, phones):
        super().__init__()
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1, bias=False) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm2d(ch) for _ in range(depth))
        self.out = nn.Linear(ch, phones)

    def forward(self, spec, window):
        x = self.inp(spec * window)
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)))  #@here
        return self.out(x.mean(2).transpose(1, 2))


class Windows:
    """Taper per length, the eight most recent lengths are kept."""

    def __init__(self, keep=8):
        self.keep, self.made = keep, OrderedDict()

    def get(self, batch, length):
        if length not in self.made:
            taper = torch.hann_window(length, device="cuda")
            self.made[length] = taper.expand(batch, 1, 80, length).contiguous()
        self.made.move_to_end(length)
        while len(self.made) > self.keep:
            self.made.popitem(last=False)
        return self.made[length]


class BucketSampler:
    """Short utterances first, then longer ones, as in the sorted manifest."""

    def __init__(self, batch, turns, first=300, more=2, per_bucket=7):
        self.batch, self.turns = batch, turns
        self.first, self.more, self.per_bucket = first, more, per_bucket

    def __iter__(self):
        for t in range(self.turns):
            frames = self.first * self.more ** (t // self.per_bucket)
            yield (torch.randn(self.batch, 1, 80, frames, device="cuda"),
                   torch.randint(0, 60, (self.batch, frames), device="cuda"))


def run(o):
    model = SpeechNet(32, 6 if o.variant == "a" else 7, 60).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    windows = Windows()
    losses = []
    for spec, phones in BucketSampler(max(1, int(32 * o.scale)), o.turns):
        logits = model(spec, windows.get(len(spec), spec.shape[-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), phones.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        print(len(losses), spec.shape[-1], losses[-1], flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=60)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    run(cli.parse_args())
