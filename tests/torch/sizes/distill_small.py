# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, ch, depth, stride, classes=50):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, stride=stride, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1, bias=False) for _ in range(depth))
        self.bns = nn.ModuleList(nn.BatchNorm2d(ch) for _ in range(depth))
        self.fc = nn.Linear(ch, classes)

    def forward(self, x):
        x = self.stem(x)
        for conv, bn in zip(self.body, self.bns):
            x = F.relu(bn(conv(x)))
        return self.fc(x.mean((2, 3)))


class Distill:
    def __init__(self, temperature=4.0):
        self.t = temperature
        self.teacher = ConvNet(96, 12, 2).cuda().eval().requires_grad_(False)
        self.student = ConvNet(48, 8, 1).cuda()
        self.opt = torch.optim.AdamW(self.student.parameters(), lr=1e-3)

    def step(self, x, y):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.t, 1)
        out = self.student(x)
        loss = F.cross_entropy(out, y) + F.kl_div(F.log_softmax(out / self.t, 1), soft, reduction="batchmean")
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    job = Distill()
    for s in range(a.steps):
        x = torch.randn(a.batch_size, 3, 160, 160, device="cuda")
        y = torch.randint(0, 50, (a.batch_size,), device="cuda")
        print(s, job.step(x, y), flush=True)


if __name__ == "__main__":
    main()
