# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""A dense retriever: in-batch negatives, then all passages go into an index."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class BiEncoder(nn.Module):
    def __init__(self, vocab=30000, d=384, layers=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 6, 4 * d, batch_first=True) for _ in range(layers))

    def encode(self, ids):
        x = self.emb(ids)
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        return F.normalize(x.mean(1), dim=-1)


def train(model, steps):
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
    for step in range(steps):
        q = model.encode(torch.randint(0, 30000, (16, 32), device="cuda"))
        p = model.encode(torch.randint(0, 30000, (16, 128), device="cuda"))
        loss = F.cross_entropy(q @ p.t() / 0.05, torch.arange(16, device="cuda"))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        print("step", step, loss.item(), flush=True)


def build_index(model, passages, batch):
    model.eval()
    rows = []
    for i in range(passages // batch):
        ids = torch.randint(0, 30000, (batch, 128), device="cuda")
        rows.append(model.encode(ids))  #@here
        print("indexed", (i + 1) * batch, flush=True)
    return torch.cat(rows)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    args = cli.parse_args()
    model = BiEncoder(layers=6 if args.variant == "a" else 8).cuda()
    train(model, 5)
    print(build_index(model, 4_000_000, int(48 * args.scale)).shape)
