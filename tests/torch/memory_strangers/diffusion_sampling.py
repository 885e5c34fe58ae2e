# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad oom-graph-retention
"""Draws samples from a denoising diffusion model, 1000 steps each."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, channels, emb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, channels), nn.GroupNorm(8, channels)
        self.conv1, self.conv2 = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(emb, channels)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, channels=64, blocks=3, emb=128):
        super().__init__()
        self.emb = emb
        self.inp, self.out = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.blocks = nn.ModuleList(ResBlock(channels, emb) for _ in range(blocks))

    def forward(self, x, t):
        freqs = torch.exp(-math.log(10000) * torch.arange(self.emb // 2, device=x.device) / (self.emb // 2))
        emb = torch.cat([(t[:, None] * freqs).sin(), (t[:, None] * freqs).cos()], 1)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.out(h)  #@here


def sample(model, n, steps=1000):
    betas = torch.linspace(1e-4, 0.02, steps, device="cuda")
    alphas = 1 - betas
    bars = alphas.cumprod(0)
    x = torch.randn(n, 3, 64, 64, device="cuda")
    for i in reversed(range(steps)):
        t = torch.full((n,), float(i), device="cuda")
        eps = model(x, t)  #@here
        x = (x - betas[i] / (1 - bars[i]).sqrt() * eps) / alphas[i].sqrt()  #@here
        if i:
            x = x + betas[i].sqrt() * torch.randn_like(x)  #@here
    return x


model = Denoiser().cuda().eval()
images = sample(model, 16)  #@scale  #@here
print(images.shape)
