# SPDX-License-Identifier: Apache-2.0
# label: growth
import argparse
from collections import defaultdict

import torch
from torch import nn


def block(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class SmallResNetish(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.stem = block(3, 32, 2)
        self.stage1 = block(32, 64, 1)
        self.stage2 = block(64, wide, 2)
        self.stage3 = block(wide, wide, 2)
        self.head = nn.Linear(wide, 100)

    def forward(self, x):
        x = self.stage3(self.stage2(self.stage1(self.stem(x))))
        return self.head(x.mean((2, 3)))


class ActivationProbe:
    """Collects the outputs of named stages for the weekly dead-unit report."""

    def __init__(self, model, names):
        self.seen = defaultdict(list)
        self.handles = []
        for name, module in model.named_children():
            if name in names:
                self.handles.append(module.register_forward_hook(self._make(name)))

    def _make(self, name):
        def hook(module, inputs, output):
            self.seen[name].append(output.detach())  #@here
        return hook

    def latest(self, name):
        return self.seen[name][-1]


class Trainer:
    def __init__(self, model, probe, lr):
        self.model, self.probe = model, probe
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.loss_fn = nn.CrossEntropyLoss()

    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.opt.step()
        return loss.item()


parser = argparse.ArgumentParser()
parser.add_argument("--scale", type=float, default=1.0)
parser.add_argument("--turns", type=int, default=60)
parser.add_argument("--variant", default="a", choices=["a", "b"])
args = parser.parse_args()

batch = max(1, int(48 * args.scale))
model = SmallResNetish(128 if args.variant == "a" else 160).cuda()
probe = ActivationProbe(model, {"stage1", "stage2"})
trainer = Trainer(model, probe, lr=0.05)
for it in range(args.turns):
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 100, (batch,), device="cuda")
    loss = trainer.step(images, labels)
    if it % 5 == 0:
        dead = (probe.latest("stage2") == 0).float().mean().item()
        print(f"iter {it} loss {loss:.3f} dead {dead:.3f}", flush=True)
