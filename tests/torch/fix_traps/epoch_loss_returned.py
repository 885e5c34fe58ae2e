# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: edit kept no_grad
"""Validation adds up its losses and returns them; the caller only prints and remembers the best."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, BATCHES = 65536, 60  #@cpu 8, 3
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def batch_of(rows):
    return torch.randn(rows, 1024, device="cuda"), torch.arange(rows, device="cuda") % 10


def train_epoch():
    for _ in range(3):
        x, y = batch_of(BATCH)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate():
    val_loss = 0
    for _ in range(BATCHES):
        x, y = batch_of(BATCH)
        val_loss += F.cross_entropy(model(x), y)
    return val_loss / BATCHES


best = float("inf")
for epoch in range(2):
    train_epoch()
    current = evaluate()
    best = min(best, current.item())
    print(epoch, best)
