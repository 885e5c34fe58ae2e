# SPDX-License-Identifier: Apache-2.0
"""Sampling with attention between all pixels of a 64 x 64 latent."""
import argparse
import torch
import torch.nn as nn


class PixelAttention(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.qkv = nn.Conv2d(ch, 3 * ch, 1)
        self.out = nn.Conv2d(ch, ch, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(x).flatten(2).chunk(3, 1)
        att = torch.softmax(torch.bmm(q.transpose(1, 2), k) * c ** -0.5, -1)
        return x + self.out(torch.bmm(v, att.transpose(1, 2)).view(n, c, h, w))


class Model(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.inp, self.out = nn.Conv2d(4, ch, 3, padding=1), nn.Conv2d(ch, 4, 3, padding=1)
        self.mid = PixelAttention(ch)

    def forward(self, x):
        return self.out(self.mid(torch.relu(self.inp(x))))


@torch.inference_mode()
def sample(model, n, steps):
    x = torch.randn(n, 4, 64, 64, device="cuda")
    for i in range(steps):
        a = 1 - (i + 1) / (steps + 1)
        x = x - (1 - a) / steps * model(x)
        print("step", i, flush=True)
    return x


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--num-images", type=int, default=80)
    p.add_argument("--steps", type=int, default=6)
    args = p.parse_args()
    print(sample(Model().cuda().eval(), args.num_images, args.steps).shape)
