# SPDX-License-Identifier: Apache-2.0
# label: capacity
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvStack(nn.Module):
    def __init__(self, cin, cout, n):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(cin if i == 0 else cout, cout, 3, padding=1) for i in range(n))
        self.norms = nn.ModuleList(nn.BatchNorm2d(cout) for _ in range(n))

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.silu(norm(conv(x)))  #@here
        return x


class UNet(nn.Module):
    def __init__(self, bands, ch, levels, classes):
        super().__init__()
        widths = [ch * 2 ** i for i in range(levels)]
        self.enc = nn.ModuleList(ConvStack(a, b, 3) for a, b in zip([bands] + widths, widths))
        self.dec = nn.ModuleList(
            ConvStack(a + b, a, 2) for a, b in reversed(list(zip(widths, widths[1:]))))
        self.head = nn.Conv2d(ch, classes, 1)

    def forward(self, x):
        skips = []
        for i, stack in enumerate(self.enc):
            x = stack(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for stack in self.dec:
            x = stack(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1))
        return self.head(x)


class TileLoader:
    def __init__(self, n, batch, bands, size):
        self.n, self.shape, self.size = n, (batch, bands, size, size), size

    def __len__(self):
        return self.n

    def __iter__(self):
        for _ in range(self.n):
            yield (torch.randn(self.shape, device="cuda"),
                   torch.randint(0, 6, (self.shape[0], self.size, self.size), device="cuda"))


def fit(model, loader, lr=1e-3):
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    running = 0.0
    for i, (tile, mask) in enumerate(loader):
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(tile), mask)
        loss.backward()
        opt.step()
        running += loss.item()
        print(f"{i + 1}/{len(loader)} {running / (i + 1):.4f}", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=30)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    net = UNet(bands=8, ch=64, levels=4 if args.variant == "a" else 5, classes=6).cuda()
    fit(net, TileLoader(args.turns, max(1, int(10 * args.scale)), 8, 512))
