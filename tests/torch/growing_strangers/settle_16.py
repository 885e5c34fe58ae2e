# SPDX-License-Identifier: Apache-2.0
# settles: fixed noise fields cached by noise level (12 levels, one more per step and then in turn), samples every 14 steps, after about step 14
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

LEVELS = [0.02 * 1.4 ** i for i in range(12)]


class Score(nn.Module):
    def __init__(self, c=48):
        super().__init__()
        self.a = nn.Conv2d(1, c, 3, padding=1)
        self.b = nn.Conv2d(c, c, 3, padding=1)
        self.c = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x, sigma):
        h = F.elu(self.a(x))
        h = h + F.elu(self.b(h))
        return self.c(h) / sigma


class NoiseTable:
    """Common random numbers: the same noise field each time a level is used."""

    def __init__(self, shape):
        self.shape = shape
        self.table = {}

    def __getitem__(self, level):
        try:
            return self.table[level]
        except KeyError:
            return self.table.setdefault(level, LEVELS[level] * torch.randn(self.shape, device="cuda"))


class App:
    def __init__(self):
        self.model = Score().to("cuda")
        self.ema = copy.deepcopy(self.model).requires_grad_(False)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.noise = NoiseTable((256, 1, 128, 128))
        self.step = 0

    @torch.no_grad()
    def sample(self):
        x = torch.rand(64, 1, 128, 128, device="cuda")
        for s in reversed(LEVELS):
            x = x + 0.5 * s * s * self.ema(x, s) + 0.1 * s * torch.randn_like(x)
        return x.clamp(0, 1).cpu()

    def train_step(self):
        self.step += 1
        level = (self.step - 1) % len(LEVELS)
        x0 = torch.rand(64, 1, 128, 128, device="cuda")
        pick = torch.randint(0, 256, (64,), device="cuda")
        eps = self.noise[level][pick]
        s = LEVELS[level]
        loss = ((self.model(x0 + eps, s) * s + eps / s) ** 2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for e, p in zip(self.ema.parameters(), self.model.parameters()):
                e.mul_(0.99).add_(p, alpha=0.01)
        if self.step % 14 == 0:
            self.sample()


app = App()
try:
    while True:
        app.train_step()
except torch.OutOfMemoryError:
    print(f"failed in step {app.step}")
