# SPDX-License-Identifier: Apache-2.0
"""Semantic segmentation at 320 pixels."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES = 21


def build(ch, depth):
    layers = [nn.Conv2d(3, ch, 3, padding=1)]
    for i in range(depth):
        r = (1, 2, 4)[i % 3]
        layers += [nn.Conv2d(ch, ch, 3, padding=r, dilation=r, bias=False), nn.BatchNorm2d(ch), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(ch, CLASSES, 1))


class Meter:
    def __init__(self):
        self.right = self.seen = 0

    def update(self, logits, y):
        self.right += (logits.argmax(1) == y).sum().item()
        self.seen += y.numel()
        return self.right / self.seen


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--steps", type=int, default=5)
    a = p.parse_args()
    model = build(48, 8).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    meter = Meter()
    for i in range(a.steps):
        x = torch.randn(a.batch_size, 3, 320, 320, device="cuda")
        y = torch.randint(0, CLASSES, (a.batch_size, 320, 320), device="cuda")
        opt.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        opt.step()
        with torch.no_grad():
            print(i, loss.item(), meter.update(logits, y), flush=True)
