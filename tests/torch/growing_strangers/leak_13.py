# SPDX-License-Identifier: Apache-2.0
# leak: text features of varying length cached per sample id that never comes again, about 27 MiB per step
import itertools
import random

import torch
from torch import nn

rng = random.Random(11)


class TextEncoder(nn.Module):
    def __init__(self, vocab=8000, dim=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.conv = nn.Conv1d(dim, dim, 5, padding=2, groups=8)
        self.norm = nn.LayerNorm(dim)
        self.cache = {}

    def features(self, uid, ids):
        if uid in self.cache:
            return self.cache[uid]
        h = self.embed(ids)
        h = self.norm(h + torch.relu(self.conv(h.transpose(1, 2))).transpose(1, 2))
        self.cache[uid] = h.detach()
        return h


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = TextEncoder()
        self.tags = nn.Linear(512, 17)

    def forward(self, uid, ids):
        return self.tags(self.encoder.features(uid, ids))


def batches():
    for epoch in itertools.count():
        for i in range(200):
            length = rng.randint(64, 512)
            ids = torch.randint(0, 8000, (48, length), device="cuda")
            tags = torch.randint(0, 17, (48, length), device="cuda")
            yield f"{epoch}-{i}", ids, tags


def fit(progress):
    model = Tagger().to("cuda")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    ce = nn.CrossEntropyLoss()
    stream = batches()
    while True:
        progress[0] += 1
        uid, ids, tags = next(stream)
        logits = model(uid, ids)
        loss = ce(logits.reshape(-1, 17), tags.reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        del logits, loss


if __name__ == "__main__":
    progress = [0]
    try:
        fit(progress)
    except torch.OutOfMemoryError:
        print(f"failed in step {progress[0]}")
