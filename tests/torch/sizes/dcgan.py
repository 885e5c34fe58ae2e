# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def up(cin, cout):
    return nn.Sequential(nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


def down(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 4, 2, 1), nn.LeakyReLU(0.2))


class Generator(nn.Module):
    def __init__(self, z=128):
        super().__init__()
        self.fc = nn.Linear(z, 512 * 8 * 8)
        self.net = nn.Sequential(up(512, 256), up(256, 128), up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(F.relu(self.fc(z)).view(-1, 512, 8, 8))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(down(3, 64), down(64, 128), down(128, 256), down(256, 512))
        self.out = nn.Linear(512, 1)

    def forward(self, x):
        return self.out(self.net(x).mean((2, 3)))


def main(batch_size, steps):
    g, d = Generator().cuda(), Critic().cuda()
    opt_g = torch.optim.Adam(g.parameters(), 2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), 2e-4, betas=(0.5, 0.999))
    for step in range(steps):
        real = torch.rand(batch_size, 3, 128, 128, device="cuda") * 2 - 1
        fake = g(torch.randn(batch_size, 128, device="cuda"))
        loss_d = F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = F.softplus(-d(fake)).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        print(step, loss_d.item(), loss_g.item())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=1024)
    ap.add_argument("--steps", type=int, default=3)
    o = ap.parse_args()
    main(o.batch_size, o.steps)
