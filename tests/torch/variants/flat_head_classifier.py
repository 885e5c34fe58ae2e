# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
"""VGG-like classifier."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def stage(cin, cout, pool):
    layers = [nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(inplace=True)]
    if pool:
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


class Vgg(nn.Module):
    def __init__(self, classes, hidden, size=224):
        super().__init__()
        plan = [(3, 32, True), (32, 64, True), (64, 128, False), (128, 256, False)]
        self.features = nn.Sequential(*[stage(*p) for p in plan])
        self.side = size // 4
        self.channels = plan[-1][1]
        self.hidden = hidden
        self.head = self.build_head(classes)

    def build_head(self, classes):
        flat = self.channels * self.side * self.side
        print("head", flat, "->", self.hidden, flush=True)
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(flat, self.hidden, device="cuda"),  #@here
            nn.ReLU(),
            nn.Linear(self.hidden, classes, device="cuda"),
        )

    def forward(self, x):
        return self.head(self.features(x))


def accuracy(logits, y):
    return (logits.argmax(1) == y).float().mean().item()


def train(model, turns, batch):
    opt = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=5e-4)
    for t in range(turns):
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        y = torch.randint(0, 1000, (batch,), device="cuda")
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(t, loss.item(), accuracy(logits, y), flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=20)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    hidden = int((4096 if args.variant == "a" else 3840) * args.scale)
    train(Vgg(1000, hidden).cuda(), args.turns, batch=8)
