# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""Road segmentation: trained on crops, validated on full frames."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class DilatedNet(nn.Module):
    def __init__(self, ch, depth, classes=19):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, padding=1)
        self.convs = nn.ModuleList(
            nn.Conv2d(ch, ch, 3, padding=2 ** (i % 4), dilation=2 ** (i % 4), bias=False) for i in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm2d(ch) for _ in range(depth))
        self.cls = nn.Conv2d(ch, classes, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)))
        return self.cls(x)


class Runner:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.history = []

    def train_step(self, x, y):
        self.model.train()
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.history.append(loss.item())

    def validate(self, x, y):
        self.model.eval()
        pred = self.model(x).argmax(1)  #@here
        return (pred == y).float().mean().item()


def frames(batch, h, w):
    return (torch.randn(batch, 3, h, w, device="cuda"),
            torch.randint(0, 19, (batch, h, w), device="cuda"))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=40)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    depth = 20 if args.variant == "a" else 22
    runner = Runner(DilatedNet(32, depth).cuda())
    for it in range(args.turns):
        runner.train_step(*frames(4, 192, 192))
        print(it, runner.history[-1], flush=True)
        if it % 8 == 7:
            acc = runner.validate(*frames(max(1, int(4 * args.scale)), 640, 800))
            print("val acc", acc, flush=True)


main()
