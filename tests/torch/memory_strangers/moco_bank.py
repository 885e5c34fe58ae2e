# SPDX-License-Identifier: Apache-2.0
# label: oom-growth certain=oom-growth
"""Contrastive learning with a bank of keys (MoCo)."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2048  #@scale


class Projector(nn.Module):
    def __init__(self, dim=2048):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU())
        self.head = nn.Linear(2048, dim)

    def forward(self, x):
        return F.normalize(self.head(self.backbone(x)), dim=1)  #@here


class MoCo:
    def __init__(self, momentum=0.999, temperature=0.07):
        self.query = Projector().cuda()
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.momentum, self.temperature = momentum, temperature
        self.bank = []

    @torch.no_grad()
    def update_key(self):
        for q, k in zip(self.query.parameters(), self.key.parameters()):
            k.mul_(self.momentum).add_(q, alpha=1 - self.momentum)

    def loss(self, view1, view2):
        q = self.query(view1)
        with torch.no_grad():
            self.update_key()
            k = self.key(view2)  #@here
        positive = (q * k).sum(1, keepdim=True)
        negatives = [q @ old[:256].T for old in self.bank[-4:]]
        logits = torch.cat([positive, *negatives], 1) / self.temperature
        self.bank.insert(0, k)  #@here
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device="cuda"))


moco = MoCo()
optimizer = torch.optim.SGD(moco.query.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for epoch in range(100):
    for _ in range(100):
        x = torch.randn(BATCH, 1024, device="cuda")
        loss = moco.loss(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
