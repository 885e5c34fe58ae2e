# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: words backward
"""Gradients are cleared in each iteration, although backward runs only once: a backward in the loop would be lost."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 24  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(STEPS):
    optimizer.zero_grad()
    loss = model(torch.randn(BATCH, 1024, device="cuda")).square().mean()
    total = total + loss
total.backward()
optimizer.step()
