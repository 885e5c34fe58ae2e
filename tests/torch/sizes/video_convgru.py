# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvGRU(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.gates = nn.Conv2d(2 * ch, 2 * ch, 3, padding=1)
        self.cand = nn.Conv2d(2 * ch, ch, 3, padding=1)

    def forward(self, x, h):
        z, r = torch.sigmoid(self.gates(torch.cat([x, h], 1))).chunk(2, 1)
        n = torch.tanh(self.cand(torch.cat([x, r * h], 1)))
        return (1 - z) * h + z * n


class Predictor(nn.Module):
    def __init__(self, ch=64):
        super().__init__()
        self.ch = ch
        self.inp, self.cell, self.out = nn.Conv2d(1, ch, 3, padding=1), ConvGRU(ch), nn.Conv2d(ch, 1, 1)

    def forward(self, clip):
        b, t, _, hh, ww = clip.shape
        h = torch.zeros(b, self.ch, hh, ww, device=clip.device)
        preds = []
        for i in range(t - 1):
            h = self.cell(F.relu(self.inp(clip[:, i])), h)
            preds.append(self.out(h))
        return torch.stack(preds, 1)


class Runner:
    def __init__(self, batch_size, frames=13, size=64):
        self.shape = (batch_size, frames, 1, size, size)
        self.net = Predictor().cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def step(self):
        clip = torch.rand(self.shape, device="cuda")
        loss = F.l1_loss(self.net(clip), clip[:, 1:])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=88)
    ap.add_argument("--steps", type=int, default=3)
    o = ap.parse_args()
    runner = Runner(o.batch_size)
    for s in range(o.steps):
        print(s, runner.step(), flush=True)
