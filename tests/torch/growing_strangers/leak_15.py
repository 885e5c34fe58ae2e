# SPDX-License-Identifier: Apache-2.0
# leak: GAN diversity score kept with its graph every second step (only for plots, never backward), about 34 MiB per step
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

Z, IMG, B = 128, 3072, 1024

G = nn.Sequential(
    nn.Linear(Z, 1024), nn.LeakyReLU(0.2),
    nn.Linear(1024, 1024), nn.LeakyReLU(0.2),
    nn.Linear(1024, IMG), nn.Tanh(),
).to("cuda")
D = nn.Sequential(
    nn.Linear(IMG, 512), nn.LeakyReLU(0.2),
    nn.Linear(512, 1),
).to("cuda")

opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))

history = {"d": [], "g": [], "diversity": []}


def noise():
    return torch.randn(B, Z, device="cuda")


def diversity():
    a, b = G(noise()), G(noise())
    return (a - b).abs().mean()


def d_step(real):
    with torch.no_grad():
        fake = G(noise())
    loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    return loss.item()


def g_step():
    loss = F.softplus(-D(G(noise()))).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    return loss.item()


g_steps = 0
try:
    while True:
        g_steps += 1
        real = torch.rand(B, IMG, device="cuda") * 2 - 1
        history["d"].append(d_step(real))
        history["g"].append(g_step())
        if g_steps % 2 == 0:
            history["diversity"].append(diversity())
except torch.OutOfMemoryError:
    print(f"failed in step {g_steps}")
    sys.exit(0)
