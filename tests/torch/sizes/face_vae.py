# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, z=64):
        super().__init__()
        self.enc = nn.ModuleList([nn.Conv2d(3, 64, 3, 1, 1), nn.Conv2d(64, 128, 4, 2, 1), nn.Conv2d(128, 256, 4, 2, 1)])
        self.stats = nn.Linear(256 * 16 * 16, 2 * z)
        self.lift = nn.Linear(z, 256 * 16 * 16)
        self.dec = nn.ModuleList([nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.ConvTranspose2d(128, 64, 4, 2, 1)])
        self.rgb = nn.Conv2d(64, 3, 3, padding=1)

    def encode(self, x):
        for conv in self.enc:
            x = F.leaky_relu(conv(x), 0.1)
        return self.stats(x.flatten(1)).chunk(2, 1)

    def decode(self, z):
        x = self.lift(z).view(-1, 256, 16, 16)
        for conv in self.dec:
            x = F.leaky_relu(conv(x), 0.1)
        return torch.sigmoid(self.rgb(x))

    def forward(self, x):
        mean, logvar = self.encode(x)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
        return self.decode(z), kl


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=1408)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    vae = VAE().cuda()
    opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
    for s in range(a.steps):
        faces = torch.rand(a.batch_size, 3, 64, 64, device="cuda")
        out, kl = vae(faces)
        loss = F.mse_loss(out, faces) + 1e-4 * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)


if __name__ == "__main__":
    main()
