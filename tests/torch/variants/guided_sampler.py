# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
import argparse
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Eps(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)
        self.time = nn.Linear(1, ch)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(t)[:, :, None, None])
        h = F.silu(self.mid(h))
        return self.out(h)


class Classifier(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 8, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                                 nn.Flatten(), nn.Linear(16, classes))

    def forward(self, x):
        return F.log_softmax(self.net(x), -1)


class Sampler:
    def __init__(self, eps, clf, steps, guidance):
        self.eps, self.clf = eps, clf
        self.steps, self.guidance = steps, guidance
        self.trail = []

    def alpha(self, i):
        return math.cos(0.5 * math.pi * (i + 1) / (self.steps + 2)) ** 2

    def push(self, x, label):
        score = self.clf(x)[:, label].sum()
        return torch.autograd.grad(score, x)[0]

    def run(self, n, size, label):
        x = torch.randn(n, 3, size, size, device="cuda", requires_grad=True)
        for i in range(self.steps):
            a, b = self.alpha(self.steps - i), self.alpha(self.steps - i - 1)
            t = torch.full((n, 1), i / self.steps, device="cuda")
            e = self.eps(x, t)
            e = e - math.sqrt(1 - a) * self.guidance * self.push(x, label)
            x0 = (x - math.sqrt(1 - a) * e) / math.sqrt(a)
            x = math.sqrt(b) * x0 + math.sqrt(1 - b) * e  #@here
            self.trail = (self.trail + [x0.detach()[0].clone()])[-10:]
            print("step", i, flush=True)
        return x.detach()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    args = p.parse_args()
    ch = 64 if args.variant == "a" else 72
    eps, clf = Eps(ch).cuda().eval(), Classifier().cuda().eval()
    sampler = Sampler(eps, clf, args.turns, guidance=2.0)
    images = sampler.run(max(1, int(16 * args.scale)), 128, label=3)
    print(images.shape)
