# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def heads_of(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        h = self.n1(x)
        q, k, v = self.heads_of(self.q(h)), self.heads_of(self.k(h)), self.heads_of(self.v(h))
        w = F.softmax(q @ k.transpose(2, 3) * q.shape[-1] ** -0.5, -1)
        x = x + self.o((w @ v).transpose(1, 2).flatten(2))
        return x + self.f2(F.gelu(self.f1(self.n2(x))))


class Recogniser(nn.Module):
    def __init__(self, d=384, layers=8, phones=64):
        super().__init__()
        self.inp = nn.Linear(80, d)
        self.layers = nn.Sequential(*[Layer(d, 8) for _ in range(layers)])
        self.out = nn.Linear(d, phones)

    def forward(self, spec):
        return self.out(self.layers(self.inp(spec)))


def run(batch_size, steps, frames=800):
    net = Recogniser().cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4)
    for s in range(steps):
        spec = torch.randn(batch_size, frames, 80, device="cuda")
        phones = torch.randint(0, 64, (batch_size, frames), device="cuda")
        loss = F.cross_entropy(net(spec).transpose(1, 2), phones)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        print(s, loss.item())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=40)
    ap.add_argument("--steps", type=int, default=4)
    a = ap.parse_args()
    run(a.batch_size, a.steps)
