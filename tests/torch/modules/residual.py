# SPDX-License-Identifier: Apache-2.0
"""Convolutions with shortcuts and normalization."""
import truth
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.downsample = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (self.downsample(x) if self.downsample else x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 7, 2, 3)
        self.layer1 = nn.Sequential(Block(32, 32, 1), Block(32, 32, 1))
        self.layer2 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1))
        self.fc = nn.Linear(64, 100)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, 3, 96, 96, device="cuda")).sum().backward()
    optimizer.step()
kept = model(torch.randn(8, 3, 96, 96, device="cuda"))
truth.tell(model)
