# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
"""Detector training with anchors; boxes are suppressed when the epoch is validated."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def pairwise_iou(a, b):
    top = torch.maximum(a[:, None, :2], b[None, :, :2])  #@here
    bottom = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (bottom - top).clamp_(min=0).prod(-1)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-6)


class Detector(nn.Module):
    def __init__(self, ch, anchors):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, ch, 4, stride=4), nn.ReLU(), nn.Conv2d(ch, ch, 2, stride=2), nn.ReLU())
        self.box = nn.Conv2d(ch, 4 * anchors, 1)
        self.obj = nn.Conv2d(ch, anchors, 1)

    def forward(self, x):
        f = self.body(x)
        return self.box(f).flatten(2), self.obj(f).flatten(1)


def suppress(boxes, scores, limit=100):
    order = scores.argsort(descending=True)
    boxes = boxes[order]
    overlap = pairwise_iou(boxes, boxes).triu(1)
    return order[(overlap.amax(0) * 1000).argsort()[:limit]]


class Trainer:
    def __init__(self, net, truth):
        self.net, self.truth = net, truth
        self.opt = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def step(self, images, proposals):
        box, obj = self.net(images)
        match = pairwise_iou(proposals, self.truth).amax(1)
        goal = match.mean().expand_as(obj)
        loss = F.binary_cross_entropy_with_logits(obj, goal) + box.abs().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=20)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    net = Detector(32 if args.variant == "a" else 48, 9).cuda()
    trainer = Trainer(net, torch.rand(50, 4, device="cuda"))
    all_boxes = int(60_000 * args.scale)
    for it in range(args.turns):
        images = torch.rand(4, 3, 320, 320, device="cuda")
        print(it, trainer.step(images, torch.rand(4000, 4, device="cuda")), flush=True)
        if it % 6 == 5:
            kept = suppress(torch.rand(all_boxes, 4, device="cuda"), torch.rand(all_boxes, device="cuda"))
            print("kept", kept.numel(), flush=True)
