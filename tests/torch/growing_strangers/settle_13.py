# SPDX-License-Identifier: Apache-2.0
# settles: random lengths (seeded) up to 384, the longest is drawn first at step 24, after about step 24
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SEED, CHOICES = 4, list(range(64, 385, 32))


def random_batches(size):
    rng = random.Random(SEED)
    while True:
        longest = rng.choice(CHOICES)
        lengths = [longest] + [longest - (i % 4) * 8 for i in range(1, size)]
        lengths.sort(reverse=True)
        yield lengths


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20000, 256, padding_idx=0)
        self.gru = nn.GRU(256, 384, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(768, 2)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True)
        out, _ = self.gru(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=ids.shape[1])
        return self.fc(out.mean(1))


def train(log):
    model = Sentiment().to("cuda")
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9, centered=True)
    for lengths in random_batches(64):
        log.append(lengths[0])
        ids = torch.randint(1, 20000, (64, lengths[0]), device="cuda")
        y = torch.randint(0, 2, (64,), device="cuda")
        loss = nn.functional.cross_entropy(model(ids, torch.tensor(lengths)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


log = []  # one int per step
try:
    train(log)
except torch.OutOfMemoryError:
    print(f"failed in step {len(log)}")
