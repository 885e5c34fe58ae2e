# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""Stateful character model; one optimiser step per document, chunks in between."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class CharModel(nn.Module):
    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.cell = nn.GRUCell(emb, hidden)
        self.head = nn.Linear(hidden, vocab)
        self.hidden = hidden

    def start(self, batch, device):
        return torch.zeros(batch, self.hidden, device=device)

    def forward(self, chars, h):
        outs = []
        for t in range(chars.shape[1]):
            h = self.cell(self.emb(chars[:, t]), h)
            outs.append(h)
        return self.head(torch.stack(outs, 1)), h


class Document:
    def __init__(self, batch, chunk, n, vocab):
        self.args = batch, chunk, n, vocab

    def __iter__(self):
        batch, chunk, n, vocab = self.args
        for _ in range(n):
            yield torch.randint(0, vocab, (batch, chunk + 1), device="cuda")


def train_document(model, opt, doc, batch):
    opt.zero_grad()
    h = model.start(batch, "cuda")
    seen, recent = 0, []
    for part in doc:
        logits, h = model(part[:, :-1], h)  #@here
        loss = F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten())
        loss.backward(retain_graph=True)
        recent = (recent + [loss.item()])[-20:]
        seen += 1
        print(seen, sum(recent) / len(recent), flush=True)
    opt.step()
    return seen


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    batch = int(256 * a.scale)
    model = CharModel(vocab=128, emb=64, hidden=1024 if a.variant == "a" else 1152).cuda()
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    print(train_document(model, opt, Document(batch, 32, a.turns, 128), batch))
