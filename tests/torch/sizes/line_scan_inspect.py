# SPDX-License-Identifier: Apache-2.0
"""Defect maps of a line-scan camera: the width is fixed, the number of lines is an option."""
import argparse
import torch
import torch.nn as nn


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class Inspector:
    WIDTH = 512

    def __init__(self, lines, rolls=4, ch=48, depth=7):
        self.lines, self.rolls = lines, rolls
        self.net = nn.Sequential(conv(1, ch), *[conv(ch, ch) for _ in range(depth - 1)], nn.Conv2d(ch, 1, 1)).cuda()
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=1e-4)

    def step(self):
        strip = torch.rand(self.rolls, 1, self.lines, self.WIDTH, device="cuda")
        truth = (strip > 0.999).float()
        loss = nn.functional.binary_cross_entropy_with_logits(self.net(strip), truth)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--resolution", type=int, default=2048, help="lines per strip")
    ap.add_argument("--steps", type=int, default=4)
    o = ap.parse_args()
    inspector = Inspector(o.resolution)
    for s in range(o.steps):
        print(s, inspector.step(), flush=True)
