# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Encoder pre-training; the sequence gets longer while the training goes on."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.ff1, self.ff2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = ((q @ k.mT) * (d // self.heads) ** -0.5).softmax(-1) @ v  #@here
        return self.proj(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.ff2(F.relu(self.ff1(self.ln2(x))))


class Model(nn.Module):
    def __init__(self, vocab, d, heads, layers):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Layer(d, heads) for _ in range(layers))
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Curriculum:
    stages = ((0, 256), (5, 512), (10, 1024), (18, 2048))

    def __init__(self):
        self.length = 0

    def at(self, step):
        self.length = max(t for s, t in self.stages if s <= step)
        return self.length


class LossLog:
    """Losses stay on the device until printed, to avoid a sync at each step."""

    def __init__(self):
        self.values = []

    def add(self, loss):
        self.values.append(loss.detach())

    def mean(self):
        return torch.stack(self.values[-10:]).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=50)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    model = Model(1000, 256, 8, 10 if a.variant == "a" else 11).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    plan, log = Curriculum(), LossLog()
    batch = max(1, int(8 * a.scale))
    for step in range(a.turns):
        ids = torch.randint(0, 1000, (batch, plan.at(step)), device="cuda")
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.add(loss)
        print(step, plan.length, log.mean(), flush=True)


main()
