# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tdnn(nn.Module):
    def __init__(self, mel=80, ch=512, layers=20, phones=48):
        super().__init__()
        self.inp = nn.Conv1d(mel, ch, 5, padding=2)
        self.convs = nn.ModuleList(nn.Conv1d(ch, ch, 3, padding=1) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(ch) for _ in range(layers))
        self.out = nn.Conv1d(ch, phones, 1)

    def forward(self, x):
        x = self.inp(x)
        for conv, norm in zip(self.convs, self.norms):
            x = x + F.relu(norm(conv(x)))
        return self.out(x)


class Corpus:
    def __init__(self, batch_size, frames):
        self.batch_size, self.frames = batch_size, frames

    def __next__(self):
        return (torch.randn(self.batch_size, 80, self.frames, device="cuda"),
                torch.randint(0, 48, (self.batch_size, self.frames), device="cuda"))

    def __iter__(self):
        return self


p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=32)
p.add_argument("--frames", type=int, default=1600)
p.add_argument("--steps", type=int, default=4)
a = p.parse_args()
net = Tdnn().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for step, (x, y) in zip(range(a.steps), Corpus(2 * a.batch_size, a.frames)):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), flush=True)
