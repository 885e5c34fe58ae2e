# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
"""Image classification on the shared box."""
import argparse
import os
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


class Unit(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(ch)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self, ch, units, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 7, stride=2, padding=3)
        self.units = nn.Sequential(*[Unit(ch) for _ in range(units)])
        self.fc = nn.Linear(ch, classes)

    def forward(self, x):
        return self.fc(self.units(self.stem(x)).mean((2, 3)))


def prepare(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.backends.cudnn.benchmark = False
    torch.cuda.set_per_process_memory_fraction(0.35)  #@here
    return torch.device("cuda")


class Accumulate:
    def __init__(self):
        self.sums = {}

    def __call__(self, **values):
        for k, v in values.items():
            s, n = self.sums.get(k, (0.0, 0))
            self.sums[k] = (s + v, n + 1)

    def means(self):
        return {k: round(s / n, 4) for k, (s, n) in self.sums.items()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=20)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    device = prepare(1)
    net = Net(64, 8 if a.variant == "a" else 9, 200).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    log = Accumulate()
    batch = max(1, int(64 * a.scale))
    for step in range(a.turns):
        x = torch.randn(batch, 3, 224, 224, device=device)
        y = torch.randint(0, 200, (batch,), device=device)
        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log(loss=loss.item(), top1=(out.argmax(1) == y).float().mean().item())
        print(step, log.means(), flush=True)


main()
