# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
"""Diffusion on spectrogram patches, with a small preview sample before the training."""
import argparse
import contextlib
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def small_footprint(share):
    """The preview must not disturb other users of the card."""
    torch.cuda.set_per_process_memory_fraction(share)  #@here
    with torch.inference_mode():
        yield
    torch.cuda.empty_cache()


class Denoiser(nn.Module):
    def __init__(self, ch, depth):
        super().__init__()
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.time = nn.Linear(1, ch)
        self.body = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1) for _ in range(depth))
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)[:, :, None, None]
        for conv in self.body:
            h = h + F.relu(conv(h))
        return self.out(h)


def noise_level(t):
    return math.sin(0.5 * math.pi * t)


def preview(model, n, steps):
    with small_footprint(0.3):
        x = torch.randn(n, 1, 128, 128, device="cuda")
        for i in reversed(range(1, steps + 1)):
            t = torch.full((n, 1), i / steps, device="cuda")
            x = x - noise_level(i / steps) / steps * model(x, t)
    return tuple(x.shape)


class EmaWeights:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.values = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        for v, p in zip(self.values, model.parameters()):
            v.lerp_(p, 1 - self.decay)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=25)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    model = Denoiser(64, 9 if a.variant == "a" else 10).cuda()
    opt, ema = torch.optim.AdamW(model.parameters(), lr=2e-4), EmaWeights(model)
    print("preview", preview(model, 4, 10))
    batch = max(1, int(48 * a.scale))
    for i in range(a.turns):
        clean = torch.rand(batch, 1, 128, 128, device="cuda")
        level = noise_level(((7 * i) % 10 + 1) / 10)
        noise = torch.randn_like(clean)
        t = torch.full((batch, 1), level, device="cuda")
        loss = F.mse_loss(model(clean + level * noise, t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
        print(i, loss.item(), flush=True)


main()
