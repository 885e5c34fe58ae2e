# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, z, ch):
        super().__init__()
        self.ch = ch
        self.fc = nn.Linear(z, 4 * ch * 16 * 16)
        self.up1 = nn.ConvTranspose2d(4 * ch, 2 * ch, 4, 2, 1)
        self.up2 = nn.ConvTranspose2d(2 * ch, ch, 4, 2, 1)
        self.up3 = nn.ConvTranspose2d(ch, 3, 4, 2, 1)

    def forward(self, z):
        x = F.relu(self.fc(z).view(-1, 4 * self.ch, 16, 16))
        x = F.relu(self.up2(F.relu(self.up1(x))))
        return torch.tanh(self.up3(x))


class Critic(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.c1 = nn.Conv2d(3, ch, 4, 2, 1)
        self.c2 = nn.Conv2d(ch, 2 * ch, 4, 2, 1)
        self.c3 = nn.Conv2d(2 * ch, 4 * ch, 4, 2, 1)
        self.out = nn.Linear(4 * ch, 1)

    def forward(self, x):
        for conv in (self.c1, self.c2, self.c3):
            x = F.leaky_relu(conv(x), 0.2)
        return self.out(x.mean((2, 3))).squeeze(1)


class Smooth:
    def __init__(self, beta=0.95):
        self.beta, self.value = beta, None

    def update(self, x):
        if self.value is None:
            self.value = x
        self.value = self.beta * self.value + (1 - self.beta) * x  #@here

    def __str__(self):
        return f"{float(self.value):.4f}"


def bce(logits, real):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    z = 100 if a.variant == "a" else 128
    gen, critic = Generator(z, 32).cuda(), Critic(64).cuda()
    og = torch.optim.Adam(gen.parameters(), 2e-4, betas=(0.5, 0.999))
    oc = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.999))
    d_meter, batch = Smooth(), max(2, int(40 * a.scale))
    g_recent = []
    for it in range(a.turns):
        real = torch.rand(batch, 3, 128, 128, device="cuda") * 2 - 1
        fake = gen(torch.randn(batch, z, device="cuda"))
        d_loss = bce(critic(real), True) + bce(critic(fake), False)
        oc.zero_grad()
        d_loss.backward(retain_graph=True)  # fake is used again below
        oc.step()
        g_loss = bce(critic(fake), True)
        og.zero_grad()
        g_loss.backward()
        og.step()
        d_meter.update(d_loss)
        g_recent = g_recent[-50:] + [g_loss.item()]
        print(it, str(d_meter), g_recent[-1], flush=True)


main()
