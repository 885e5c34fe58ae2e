# SPDX-License-Identifier: Apache-2.0
import argparse
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Field(nn.Module):
    def __init__(self, freqs=10, width=256, depth=8):
        super().__init__()
        self.freqs = freqs
        sizes = [6 * freqs] + [width] * depth
        self.fcs = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 4)

    def encode(self, p):
        scaled = torch.cat([p * (2 ** i * math.pi) for i in range(self.freqs)], -1)
        return torch.cat([scaled.sin(), scaled.cos()], -1)

    def forward(self, p):
        x = self.encode(p)
        for fc in self.fcs:
            x = F.relu(fc(x))
        return self.out(x)


def render(field, origin, direction, samples=64):
    z = torch.linspace(2.0, 6.0, samples, device=origin.device)
    points = origin[:, None] + direction[:, None] * z[None, :, None]
    raw = field(points)
    alpha = 1 - torch.exp(-F.relu(raw[..., 3]) * 4.0 / samples)
    through = torch.cumprod(1 - alpha + 1e-10, -1)
    weight = alpha * torch.cat([torch.ones_like(through[:, :1]), through[:, :-1]], -1)
    return (weight[..., None] * raw[..., :3].sigmoid()).sum(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rays", type=int, default=18_000)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    field = Field().cuda()
    opt = torch.optim.Adam(field.parameters(), lr=5e-4)
    for s in range(a.steps):
        origin = torch.zeros(a.rays, 3, device="cuda")
        direction = F.normalize(torch.randn(a.rays, 3, device="cuda"), dim=1)
        loss = F.mse_loss(render(field, origin, direction), torch.rand(a.rays, 3, device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)


main()
