# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""A U-Net in plain Python objects around modules: stages are looped over by segment()."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


class Segmenter:
    def __init__(self, width, depth):
        sizes = [width * 2 ** i for i in range(depth)]
        self.down = [conv(a, b).cuda() for a, b in zip([3, *sizes], sizes)]
        self.up = [conv(a + b, b).cuda() for a, b in zip(sizes[:0:-1], sizes[-2::-1])]
        self.head = nn.Conv2d(width, 4, 1).cuda()

    def parameters(self):
        return [p for part in [*self.down, *self.up, self.head] for p in part.parameters()]

    def segment(self, x):
        skips = []
        for stage in self.down:
            x = stage(x)  #@here
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = skips.pop()
        for stage in self.up:
            skip = skips.pop()
            x = stage(torch.cat([F.interpolate(x, size=skip.shape[-2:]), skip], 1))
        return self.head(x)


def fit(net, batch, size, steps):
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for step in range(steps):
        x = torch.rand(batch, 3, size, size, device="cuda")
        y = torch.randint(0, 4, (batch, size, size), device="cuda")
        loss = F.cross_entropy(net.segment(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    fit(Segmenter(32 if a.variant == "a" else 40, 5), int(24 * a.scale), 384, 10)
