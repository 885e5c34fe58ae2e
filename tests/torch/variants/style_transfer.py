# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Features(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip((3,) + widths, widths))

    def forward(self, x):
        maps = []
        for i, conv in enumerate(self.convs):
            x = F.relu(conv(x))
            maps.append(x)
            if i + 1 < len(self.convs):
                x = F.avg_pool2d(x, 2)
        return maps


def gram(feat):
    n, c, h, w = feat.shape
    f = feat.reshape(n, c, h * w).transpose(1, 2)
    return torch.bmm(f, f.transpose(1, 2)) / (c * h * w)  #@here


class StyleTransfer:
    def __init__(self, widths, size):
        self.net = Features(widths).cuda().requires_grad_(False)
        self.size = size
        self.picture = torch.rand(1, 3, size, size, device="cuda", requires_grad=True)
        self.opt = torch.optim.Adam([self.picture], lr=0.02)

    def prepare(self, content, style):
        with torch.no_grad():
            self.content = self.net(content)[-1]
            self.style = [gram(m) for m in self.net(style)]

    def step(self):
        maps = self.net(self.picture)
        loss = F.mse_loss(maps[-1], self.content)
        for m, s in zip(maps, self.style):
            loss = loss + 1e3 * F.mse_loss(gram(m), s)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def picture(size):
    return torch.rand(1, 3, size, size, device="cuda")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=30)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    a = cli.parse_args()
    widths = (64, 128, 256) if a.variant == "a" else (48, 96, 192)
    size = int(320 * a.scale) // 4 * 4
    job = StyleTransfer(widths, size)
    job.prepare(picture(size), picture(size))
    for t in range(a.turns):
        print(t, job.step(), flush=True)
