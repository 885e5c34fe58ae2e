# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""DDPM on small images. A grid of samples is drawn every few steps."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.t = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1), nn.Linear(64, c)

    def forward(self, x, emb):
        h = F.silu(self.a(x)) + self.t(emb)[:, :, None, None]
        return x + self.b(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, c, depth):
        super().__init__()
        self.stem, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1)
        self.body = nn.ModuleList(Res(c) for _ in range(depth))

    def forward(self, x, t):
        freq = torch.exp(-torch.arange(32, device=x.device) / 4.0)
        emb = torch.cat([torch.sin(t[:, None] * freq), torch.cos(t[:, None] * freq)], 1)
        x = self.stem(x)
        for block in self.body:
            x = block(x, emb)
        return self.out(x)


class Diffusion:
    def __init__(self, net, steps=200):
        self.net, self.steps = net, steps
        self.beta = torch.linspace(1e-4, 0.02, steps, device="cuda")
        self.bar = torch.cumprod(1 - self.beta, 0)

    def loss(self, x0):
        t = torch.randint(0, self.steps, (len(x0),), device="cuda")
        noise = torch.randn_like(x0)
        bar = self.bar[t][:, None, None, None]
        return F.mse_loss(self.net(bar.sqrt() * x0 + (1 - bar).sqrt() * noise, t.float()), noise)

    def sample(self, n, size):
        x = torch.randn(n, 3, size, size, device="cuda")
        for i in reversed(range(self.steps)):
            t = torch.full((n,), float(i), device="cuda")
            eps = self.net(x, t)  #@here
            x = (x - self.beta[i] / (1 - self.bar[i]).sqrt() * eps) / (1 - self.beta[i]).sqrt()
            print("sampling", i, flush=True)
        return x.clamp(-1, 1).cpu()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    net = Denoiser(64, 4 if a.variant == "a" else 6).cuda()
    job = Diffusion(net)
    opt = torch.optim.Adam(net.parameters(), lr=2e-4)
    for step in range(12):
        loss = job.loss(torch.rand(16, 3, 64, 64, device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)
        if step % 6 == 5:
            net.eval()
            job.sample(int(16 * a.scale), 64)
            net.train()


main()
