# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: edit backward
"""Losses of many batches are added up, and backward runs once, for their mean."""
import torch
import torch.nn as nn

BATCH, BATCHES = 65536, 40  #@cpu 8, 5
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [torch.randn(BATCH, 1024) for _ in range(2)]

total = 0.0
for step in range(BATCHES):
    x = data[step % 2].cuda()
    loss = model(x).square().mean()
    total += loss
(total / BATCHES).backward()
optimizer.step()
optimizer.zero_grad()
print("mean loss", total.item() / BATCHES)
