# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: edit backward
"""The gradients are cleared between the loop and backward: a backward in the loop would lose what it has collected."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, TASKS = 65536, 32  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())


def one_round(model, optimizer):
    total_loss = 0.0
    for task in range(TASKS):
        x = torch.randn(BATCH, 1024, device="cuda")
        y = torch.full((BATCH,), task % 10, device="cuda")
        task_loss = F.cross_entropy(model(x), y)
        total_loss += task_loss
    optimizer.zero_grad()
    total_loss.backward()
    optimizer.step()
    return total_loss.item()


for _ in range(3):
    print(one_round(model, optimizer))
