# SPDX-License-Identifier: Apache-2.0
# settles: learning-rate phases with larger batches (64, 128, 256, 384 at steps 1, 11, 21, 41), after about step 41
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass(frozen=True)
class Phase:
    first: int
    lr: float
    batch: int


PHASES = (Phase(1, 0.02, 64), Phase(11, 0.05, 128), Phase(21, 0.1, 256), Phase(41, 0.15, 384))


def phase_of(step):
    return [p for p in PHASES if p.first <= step][-1]


def conv(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(conv(3, 32, 1), conv(32, 64, 2), conv(64, 64, 1), conv(64, 128, 2), nn.AdaptiveMaxPool2d(1))
        self.c = nn.Linear(128, 10)

    def forward(self, x):
        return self.c(self.f(x).flatten(1))


class Trainer:
    def __init__(self):
        self.net = Net().to("cuda")
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-4)
        self.step = 0

    def __call__(self):
        while True:
            self.step += 1
            ph = phase_of(self.step)
            for g in self.opt.param_groups:
                g["lr"] = ph.lr
            x = torch.rand(ph.batch, 3, 64, 64, device="cuda")
            y = torch.randint(0, 10, (ph.batch,), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


trainer = Trainer()
try:
    trainer()
except torch.OutOfMemoryError:
    print(f"failed in step {trainer.step}")
