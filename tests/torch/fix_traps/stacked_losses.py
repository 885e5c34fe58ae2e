# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: words backward
"""Losses are collected in a list, and backward runs over their mean; the list must stay attached."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 24  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    losses = []
    for step in range(STEPS):
        x = torch.randn(BATCH, 1024, device="cuda")
        losses.append(model(x).square().mean())
    torch.stack(losses).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
