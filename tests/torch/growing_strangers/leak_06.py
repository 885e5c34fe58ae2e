# SPDX-License-Identifier: Apache-2.0
# leak: memory bank extended by torch.cat and never cut, about 16 MiB per step (and a copy while it is extended)
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim_in=256, dim=512):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim_in, 768), nn.ReLU(), nn.Linear(768, dim))

    def forward(self, x):
        return F.normalize(self.body(x), dim=-1)


class BankContrast:
    def __init__(self, dim, negatives=256, temperature=0.1):
        self.bank = torch.empty(0, dim, device="cuda")
        self.negatives = negatives
        self.t = temperature

    def loss(self, a, b):
        pos = (a * b).sum(-1, keepdim=True)
        if self.bank.shape[0] > 0:
            pick = torch.randint(0, self.bank.shape[0], (self.negatives,), device="cuda")
            neg = a @ self.bank[pick].t()
        else:
            neg = a @ b[: self.negatives].detach().t()
        logits = torch.cat([pos, neg], dim=1) / self.t
        return F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long, device="cuda"))

    def push(self, feats):
        self.bank = torch.cat([self.bank, feats.detach()], dim=0)


class Experiment:
    batch = 8192

    def __init__(self):
        self.step = 0
        self.enc = Encoder().to("cuda")
        self.contrast = BankContrast(512)
        self.opt = torch.optim.Adam(self.enc.parameters(), lr=2e-4, betas=(0.9, 0.98))

    def go(self):
        while True:
            self.step += 1
            base = torch.randn(self.batch, 256, device="cuda")
            a = self.enc(base + 0.1 * torch.randn_like(base))
            b = self.enc(base + 0.1 * torch.randn_like(base))
            loss = self.contrast.loss(a, b)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.contrast.push(b)


if __name__ == "__main__":
    e = Experiment()
    try:
        e.go()
    except torch.OutOfMemoryError:
        print(f"failed in step {e.step}")
