# SPDX-License-Identifier: Apache-2.0
# settles: momentum-contrast queue of 24 key batches is full, after about step 25
import copy

import torch
from torch import nn
import torch.nn.functional as F


class KeyQueue:
    def __init__(self, limit):
        self.limit = limit
        self.parts = []

    def __len__(self):
        return len(self.parts)

    def keys(self):
        return torch.cat(self.parts) if self.parts else None

    def push(self, k):
        self.parts.append(k)
        while len(self.parts) > self.limit:
            self.parts.pop(0)


def encoder():
    return nn.Sequential(
        nn.Linear(1024, 1024), nn.BatchNorm1d(1024), nn.ReLU(),
        nn.Linear(1024, 2048),
    )


class MoCo:
    def __init__(self, batch=1024, limit=24, m=0.99, t=0.2):
        self.q = encoder().cuda()
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.queue = KeyQueue(limit)
        self.batch, self.m, self.t = batch, m, t
        self.opt = torch.optim.SGD(self.q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)

    @torch.no_grad()
    def momentum(self):
        for q, k in zip(self.q.parameters(), self.k.parameters()):
            k.mul_(self.m).add_(q, alpha=1 - self.m)

    def step(self):
        x = torch.randn(self.batch, 1024, device="cuda")
        q = F.normalize(self.q(x + 0.1 * torch.randn_like(x)), dim=1)
        with torch.no_grad():
            self.momentum()
            k = F.normalize(self.k(x + 0.1 * torch.randn_like(x)), dim=1)
        logits = (q * k).sum(1, keepdim=True)
        if len(self.queue):
            logits = torch.cat([logits, q @ self.queue.keys().t()], 1)
        labels = torch.zeros(self.batch, dtype=torch.long, device="cuda")
        loss = F.cross_entropy(logits / self.t, labels)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.queue.push(k)


def main():
    n = 0
    try:
        moco = MoCo()
        while True:
            n += 1
            moco.step()
    except torch.OutOfMemoryError:
        print(f"failed in step {n}")


main()
