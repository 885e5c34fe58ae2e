# SPDX-License-Identifier: Apache-2.0
# leak: forward hooks append the activations of two conv layers, about 48 MiB per step
import collections
import sys

import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, classes=20):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(64)
        self.mid = nn.Conv2d(64, 128, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(128)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.stem(x)))
        x = torch.relu(self.bn2(self.mid(x)))
        return self.fc(self.pool(x).flatten(1))


class ActivationRecorder:
    """Keeps what the named layers put out, to look at dead channels."""

    def __init__(self, model, names):
        self.store = collections.defaultdict(list)
        self.handles = []
        for name, module in model.named_modules():
            if name in names:
                self.handles.append(module.register_forward_hook(self._make(name)))

    def _make(self, name):
        def hook(module, inputs, output):
            self.store[name].append(output.detach())

        return hook


class Trainer:
    def __init__(self):
        self.model = ConvNet().cuda()
        self.recorder = ActivationRecorder(self.model, {"stem", "mid"})
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.criterion = nn.CrossEntropyLoss()
        self.steps = 0

    def step(self):
        self.steps += 1
        images = torch.rand(32, 3, 64, 64, device="cuda")
        labels = torch.randint(20, (32,), device="cuda")
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self):
        while True:
            value = self.step()
            if self.steps % 25 == 0:
                print("step", self.steps, "loss", value)


if __name__ == "__main__":
    trainer = Trainer()
    try:
        trainer.fit()
    except torch.OutOfMemoryError:
        print(f"failed in step {trainer.steps}")
        sys.exit(0)
