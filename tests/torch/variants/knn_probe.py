# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Stage(nn.Sequential):
    def __init__(self, ch, n):
        layers = []
        for _ in range(n):
            layers += [nn.Conv2d(ch, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch), nn.ReLU()]
        super().__init__(*layers)


class Encoder(nn.Module):
    def __init__(self, ch, depths, dim):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, padding=1)
        self.one = Stage(ch, depths[0])
        self.down = nn.Conv2d(ch, 2 * ch, 2, stride=2)
        self.two = Stage(2 * ch, depths[1])
        self.proj = nn.Linear(2 * ch, dim)

    def forward(self, x):
        return self.proj(self.two(self.down(self.one(self.stem(x)))).mean((2, 3)))


class KnnProbe:
    """Classifies the held-out set by its nearest training feature, every few steps."""

    def __init__(self, gallery, every):
        self.gallery, self.every = gallery, every
        self.labels = torch.randint(0, 10, (gallery,), device="cuda")

    def after_step(self, step, model):
        if step % self.every != self.every - 1:
            return None
        model.eval()
        images = torch.rand(self.gallery, 3, 64, 64, device="cuda")
        feats = F.normalize(model(images), dim=1)  #@here
        sims = feats @ feats.t()
        sims.detach().fill_diagonal_(-1)
        hit = self.labels[sims.argmax(1)] == self.labels
        model.train()
        return hit.float().mean().item()


def augment(x):
    return x + 0.1 * torch.randn_like(x)


def barlow(a, b, lam=5e-3):
    a, b = (F.batch_norm(z, None, None, training=True) for z in (a, b))
    c = a.t() @ b / len(a)
    eye = torch.eye(c.shape[0], device=c.device)
    return ((c - eye).pow(2) * (eye + lam * (1 - eye))).sum()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=30)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    net = Encoder(64, (7, 6) if a.variant == "a" else (6, 8), 256).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    probe = KnnProbe(int(448 * a.scale), every=6)
    for step in range(a.turns):
        x = torch.rand(24, 3, 64, 64, device="cuda")
        loss = barlow(net(augment(x)), net(augment(x)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), probe.after_step(step, net), flush=True)


main()
