# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
import argparse
import math
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1) / math.sqrt(d // self.heads) + mask[:t, :t]).softmax(-1) @ v
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class LM(nn.Module):
    def __init__(self, vocab, d, heads, layers, context):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.head = nn.Linear(d, vocab)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1), persistent=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for b in self.blocks:
            x = b(x, self.mask)
        return self.head(x)


def nll(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


class PerplexityCallback:
    def __init__(self, model, every, batch, context):
        self.model, self.every, self.shape = model, every, (batch, context)
        self.values = []

    def __call__(self, step):
        if (step + 1) % self.every:
            return
        was = self.model.training
        self.model.eval()
        ids = torch.randint(0, 8000, self.shape, device="cuda")
        value = math.exp(min(20.0, nll(self.model, ids).item()))  #@here
        self.values.append(value)
        self.model.train(was)
        print("ppl", value, flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--variant", default="a", choices=["a", "b"])
    o = p.parse_args()
    layers = 16 if o.variant == "a" else 18
    model = LM(8000, 512, 8, layers, 2048).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ppl = PerplexityCallback(model, 5, max(1, int(4 * o.scale)), 2049)
    for step in range(o.turns):
        loss = nll(model, torch.randint(0, 8000, (8, 257), device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)
        ppl(step)


main()
