# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Unit(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(ch)

    def forward(self, x):
        return x + F.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self, ch=64, units=12, classes=100):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 7, stride=2, padding=3)
        self.units = nn.Sequential(*[Unit(ch) for _ in range(units)])
        self.fc = nn.Linear(ch, classes)

    def forward(self, x):
        return self.fc(self.units(self.stem(x)).mean((2, 3)))


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=96)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(args.steps):
    x = torch.randn(args.batch_size, 3, 224, 224, device="cuda")
    y = torch.randint(0, 100, (args.batch_size,), device="cuda")
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
