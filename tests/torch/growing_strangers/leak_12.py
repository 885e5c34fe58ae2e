# SPDX-License-Identifier: Apache-2.0
# leak: the whole sampling chain kept for a gallery every 10th step, about 24 MiB per step
import torch
import torch.nn as nn
import torch.nn.functional as F

T = 20
betas = torch.linspace(1e-4, 0.2, T)
alpha_bar = torch.cumprod(1 - betas, 0)  # on the CPU, read as floats


class EpsNet(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.temb = nn.Embedding(T, ch)
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.m1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.m2 = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.temb(t)[:, :, None, None]
        h = h + self.m1(F.silu(h))
        h = h + self.m2(F.silu(h))
        return self.out(F.silu(h))


class Diffusion:
    def __init__(self):
        self.net = EpsNet().to("cuda")
        self.ab = alpha_bar.to("cuda")
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.gallery = []
        self.step = 0

    def train_step(self, batch=32):
        self.step += 1
        x0 = torch.rand(batch, 3, 64, 64, device="cuda") * 2 - 1
        t = torch.randint(0, T, (x0.shape[0],), device="cuda")
        ab = self.ab[t][:, None, None, None]
        eps = torch.randn_like(x0)
        xt = ab.sqrt() * x0 + (1 - ab).sqrt() * eps
        loss = F.mse_loss(self.net(xt, t), eps)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    @torch.no_grad()
    def sample(self, n=256):
        x = torch.randn(n, 3, 64, 64, device="cuda")
        chain = []
        for i in reversed(range(T)):
            a = float(alpha_bar[i])
            eps = self.net(x, torch.full((n,), i, dtype=torch.long, device="cuda"))
            x = (x - (1 - a) ** 0.5 * eps).clamp(-3, 3)
            chain.append(x)
        return chain

    def train(self):
        while True:
            self.train_step()
            if self.step % 10 == 0:
                self.gallery.append(self.sample())


d = Diffusion()
try:
    d.train()
except torch.OutOfMemoryError:
    print(f"failed in step {d.step}")
