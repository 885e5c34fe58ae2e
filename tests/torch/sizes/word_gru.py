# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class WordGRU(nn.Module):
    def __init__(self, vocab=10_000, emb=256, hidden=1024):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.cell = nn.GRUCell(emb, hidden)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, ids):
        h = torch.zeros(ids.shape[0], self.cell.hidden_size, device=ids.device)
        outs = []
        for t in range(ids.shape[1]):
            h = self.cell(self.emb(ids[:, t]), h)
            outs.append(h)
        return self.head(torch.stack(outs, 1))


ap = argparse.ArgumentParser()
ap.add_argument("--batch-size", type=int, default=1280)
ap.add_argument("--steps", type=int, default=3)
ap.add_argument("--length", type=int, default=64)
args = ap.parse_args()
model = WordGRU().cuda()
opt = torch.optim.SGD(model.parameters(), lr=1.0)
for step in range(args.steps):
    ids = torch.randint(0, 10_000, (args.batch_size, args.length + 1), device="cuda")
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    opt.step()
    print(step, loss.item(), flush=True)
