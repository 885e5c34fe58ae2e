# SPDX-License-Identifier: Apache-2.0
import argparse
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, ch, emb):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(8, ch), nn.GroupNorm(8, ch)
        self.c1, self.c2 = nn.Conv2d(ch, ch, 3, padding=1), nn.Conv2d(ch, ch, 3, padding=1)
        self.t = nn.Linear(emb, ch)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.t(e)[:, :, None, None]
        return x + self.c2(F.silu(self.n2(h)))


class Eps(nn.Module):
    def __init__(self, ch=96, blocks=10, emb=64):
        super().__init__()
        self.emb = emb
        self.inp, self.out = nn.Conv2d(3, ch, 3, padding=1), nn.Conv2d(ch, 3, 3, padding=1)
        self.blocks = nn.ModuleList(Res(ch, emb) for _ in range(blocks))

    def embed(self, t):
        freqs = torch.exp(-math.log(1e4) * torch.arange(self.emb // 2, device=t.device) / (self.emb // 2))
        z = t[:, None] * freqs[None]
        return torch.cat([z.sin(), z.cos()], 1)

    def forward(self, x, t):
        e, x = self.embed(t), self.inp(x)
        for b in self.blocks:
            x = b(x, e)
        return self.out(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=120)
    ap.add_argument("--steps", type=int, default=4)
    a = ap.parse_args()
    net = Eps().cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for i in range(a.steps):
        x = torch.rand(a.batch_size, 3, 64, 64, device="cuda")
        t = torch.rand(a.batch_size, device="cuda")
        noise = torch.randn_like(x)
        mix = x + noise * t[:, None, None, None]
        loss = (net(mix, t) - noise).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(i, loss.item())


main()
