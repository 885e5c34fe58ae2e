# SPDX-License-Identifier: Apache-2.0
"""Temporal convolutions over many series at once."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Causal(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(ch, ch, 3, dilation=dilation)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(F.relu(self.conv(F.pad(x, (self.pad, 0)))))


class Forecaster(nn.Module):
    def __init__(self, ch=64, layers=14):
        super().__init__()
        self.inp = nn.Conv1d(4, ch, 1)
        self.layers = nn.Sequential(*[Causal(ch, 2 ** (i % 7)) for i in range(layers)])
        self.out = nn.Conv1d(ch, 3, 1)

    def forward(self, x):
        return self.out(self.layers(self.inp(x)))


def pinball(pred, y, quantiles=(0.1, 0.5, 0.9)):
    loss = 0.0
    for i, q in enumerate(quantiles):
        e = y - pred[:, i]
        loss = loss + torch.maximum(q * e, (q - 1) * e).mean()
    return loss


def main(series, steps):
    net = Forecaster().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for s in range(steps):
        x = torch.randn(series, 4, 512, device="cuda")
        y = torch.randn(series, 512, device="cuda")
        loss = pinball(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--series", type=int, default=2560)
    cli.add_argument("--steps", type=int, default=4)
    o = cli.parse_args()
    main(o.series, o.steps)
