# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: edit backward
"""The loss comes from a function, and its callers add it up for backward."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, PARTS = 65536, 30  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(part):
    x, y = torch.randn(BATCH, 1024, device="cuda"), torch.full((BATCH,), part % 10, device="cuda")
    return F.cross_entropy(model(x), y)


for step in range(3):
    optimizer.zero_grad()
    loss_sum = 0.0
    for part in range(PARTS):
        loss_sum = loss_sum + loss_of(part)
    loss_sum.backward()
    optimizer.step()
