# SPDX-License-Identifier: Apache-2.0
# settles: the discriminator and its optimizer begin at step 12 (before: reconstruction only), after about step 12
import torch
import torch.nn as nn
import torch.nn.functional as F

ADV_START = 12


class Gen(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, ch, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ch, 2 * ch, 4, 2, 1), nn.LeakyReLU(0.2))
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * ch, ch, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(ch, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.up(self.down(x))


class Disc(nn.Module):
    def __init__(self, ch=64):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(3, ch, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(ch, 4 * ch, 4, 2, 1), nn.BatchNorm2d(4 * ch), nn.LeakyReLU(0.2),
            nn.Conv2d(4 * ch, 8 * ch, 4, 2, 1), nn.BatchNorm2d(8 * ch), nn.LeakyReLU(0.2),
        )
        self.c = nn.Conv2d(8 * ch, 1, 3, 1, 1)

    def forward(self, x):
        return self.c(self.f(x))


def set_grad(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


class InpaintGan:
    def __init__(self):
        self.g = Gen().cuda()
        self.g_opt = torch.optim.Adam(self.g.parameters(), 2e-4, (0.5, 0.9))
        self.d = self.d_opt = None
        self.step = 0

    def start_adversary(self):
        self.d = Disc().cuda()
        self.d_opt = torch.optim.Adam(self.d.parameters(), 4e-4, (0.5, 0.9))

    def train_step(self):
        self.step += 1
        if self.step == ADV_START:
            self.start_adversary()
        real = torch.rand(32, 3, 128, 128, device="cuda") * 2 - 1
        holes = real.clone()
        holes[:, :, 40:80, 40:80] = 0
        fake = self.g(holes)
        loss = F.l1_loss(fake, real)
        if self.d is not None:
            set_grad(self.d, False)
            loss = loss - 0.01 * self.d(fake).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        if self.d is not None:
            set_grad(self.d, True)
            d_loss = F.relu(1 - self.d(real)).mean() + F.relu(1 + self.d(fake.detach())).mean()
            self.d_opt.zero_grad()
            d_loss.backward()
            self.d_opt.step()


if __name__ == "__main__":
    gan = InpaintGan()
    try:
        while True:
            gan.train_step()
    except torch.OutOfMemoryError:
        print(f"failed in step {gan.step}")
