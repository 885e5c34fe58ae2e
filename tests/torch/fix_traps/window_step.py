# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention
# fix: edit backward
"""Gradient accumulation, done wrong: a sum of losses, and backward once per window."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, WINDOW, STEPS = 65536, 64, 256  #@cpu 8, 3, 7
torch.manual_seed(0)


def train():
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(4, 1024, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    window_loss = 0
    for step in range(STEPS):
        x, y = torch.randn(BATCH, 1024, device="cuda"), torch.arange(BATCH, device="cuda") % 10
        loss = F.cross_entropy(model(x), y)
        window_loss = window_loss + loss
        if (step + 1) % WINDOW == 0:
            (window_loss / WINDOW).backward()
            optimizer.step()
            optimizer.zero_grad()
            window_loss = 0
    return model


model = train()
