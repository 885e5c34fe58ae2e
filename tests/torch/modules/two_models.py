# SPDX-License-Identifier: Apache-2.0
"""Two models against each other."""
import truth
import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.ConvTranspose2d(64, 128, 4), nn.BatchNorm2d(128), nn.ReLU(), nn.ConvTranspose2d(128, 3, 4, 4), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(3, 64, 4, 4), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(1024, 1))

    def forward(self, image):
        return self.main(image)


G, D = Generator().cuda(), Discriminator().cuda()
optimizers = [torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())]
for _ in range(2):
    for optimizer, sign in zip(optimizers, (1, -1)):
        optimizer.zero_grad()
        (sign * D(G(torch.randn(32, 64, 1, 1, device="cuda"))).mean()).backward()
        optimizer.step()
kept = D(G(torch.randn(32, 64, 1, 1, device="cuda")))
truth.tell(G, D)
