# SPDX-License-Identifier: Apache-2.0
# settles: logging window keeps the outputs of 16 steps and is cleared then, after about step 16
import torch
import torch.nn as nn


class Window:
    def __init__(self, every):
        self.every = every
        self.outputs, self.losses = [], []

    def add(self, step, output, loss):
        self.outputs.append(output.detach())
        self.losses.append(loss.detach())
        if step % self.every == 0:
            self.report(step)

    def report(self, step):
        mean = torch.stack(self.losses).mean().item()
        spread = sum(o.std().item() for o in self.outputs) / len(self.outputs)
        print(f"[{step}] loss {mean:.4f} spread {spread:.4f}")
        self.outputs.clear()
        self.losses.clear()


class VAE(nn.Module):
    def __init__(self, dim=2048, z=64):
        super().__init__()
        self.e = nn.Linear(dim, 512)
        self.mu, self.lv = nn.Linear(512, z), nn.Linear(512, z)
        self.d = nn.Sequential(nn.Linear(z, 512), nn.ReLU(), nn.Linear(512, dim))

    def forward(self, x):
        h = torch.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.d(z), mu, lv


step = 0
try:
    vae = VAE().to("cuda")
    opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
    window = Window(16)
    while True:
        step += 1
        x = torch.randn(4096, 2048, device="cuda")
        y, mu, lv = vae(x)
        kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
        loss = (y - x).pow(2).sum(1).mean() + kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        window.add(step, y, loss)
except torch.OutOfMemoryError:
    print(f"failed in step {step}")
