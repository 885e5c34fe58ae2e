# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""Decoder with incremental keys and values; a few warm-up steps, then samples."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class DecoderLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.dk = heads, d // heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.dk)).transpose(1, 2)

    def forward(self, x, cache=None):
        k, v = self.split(self.k(x)), self.split(self.v(x))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        w = F.softmax(self.split(self.q(x)) @ k.transpose(2, 3) * self.dk ** -0.5, -1)
        x = x + self.o((w @ v).transpose(1, 2).flatten(2))
        return x + self.ff(x), (k, v)


class Translator(nn.Module):
    def __init__(self, vocab=6000, d=512, heads=8, layers=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(DecoderLayer(d, heads) for _ in range(layers))
        self.head = nn.Linear(d, vocab)

    def forward(self, ids, caches=None):
        x, new = self.emb(ids), []
        for i, layer in enumerate(self.layers):
            x, c = layer(x, None if caches is None else caches[i])
            new.append(c)
        return self.head(x[:, -1:]), new


def translate(model, source, max_new):
    model.eval()
    logits, caches = model(source)
    words = [logits.argmax(-1)]
    for i in range(max_new):
        logits, caches = model(words[-1], caches)  #@here
        words.append(logits.argmax(-1))
        print("token", i, flush=True)
    return torch.cat(words, 1).tolist()


def warm_up(model, steps, batch):
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(steps):
        ids = torch.randint(0, 6000, (batch, 64), device="cuda")
        logits, _ = model(ids)
        loss = F.cross_entropy(logits[:, 0], ids[:, 0])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("loss", loss.item(), flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=60)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    args = cli.parse_args()
    model = Translator(layers=8 if args.variant == "a" else 9).cuda()
    warm_up(model, 4, 16)
    prompt = torch.randint(0, 6000, (max(1, int(16 * args.scale)), 480), device="cuda")
    print(len(translate(model, prompt, args.turns)))
