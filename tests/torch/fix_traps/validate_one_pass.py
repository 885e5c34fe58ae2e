# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad
# fix: edit no_grad
"""Training fits; one validation pass over everything at once, with gradients on, does not."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, HELD_OUT = 8192, 260000  #@cpu 8, 32
torch.manual_seed(0)
model = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.ReLU())), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train_epoch():
    model.train()
    for step in range(4):
        x, y = torch.randn(BATCH, 1024, device="cuda"), torch.arange(BATCH, device="cuda") % 10
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def score():
    model.eval()
    x, y = torch.randn(HELD_OUT, 1024, device="cuda"), torch.arange(HELD_OUT, device="cuda") % 10
    out = model(x)
    return (out.argmax(1) == y).float().mean().item()


for epoch in range(2):
    train_epoch()
    print(epoch, score())
