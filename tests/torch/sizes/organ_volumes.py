# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class VolumeNet(nn.Module):
    def __init__(self, ch=32, depth=10, organs=5):
        super().__init__()
        self.inp = nn.Conv3d(1, ch, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv3d(ch, ch, 3, padding=1) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm3d(ch) for _ in range(depth))
        self.out = nn.Conv3d(ch, organs, 1)

    def forward(self, x):
        x = self.inp(x)
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)))
        return self.out(x)


def dice(logits, target, organs=5):
    p = logits.softmax(1)
    score = 0.0
    for k in range(organs):
        t = (target == k).float()
        score = score + 2 * (p[:, k] * t).sum() / (p[:, k].sum() + t.sum() + 1.0)
    return 1 - score / organs


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    net = VolumeNet().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.99, nesterov=True)
    for i in range(a.steps):
        x = torch.randn(a.batch_size, 1, 64, 64, 64, device="cuda")
        y = torch.randint(0, 5, (a.batch_size, 64, 64, 64), device="cuda")
        loss = dice(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(i, loss.item(), flush=True)


main()
