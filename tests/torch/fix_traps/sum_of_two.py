# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: words backward
"""The sum begins with a term of its own, which backward in the loop would forget."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 24  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    total = sum(p.square().sum() for p in model.parameters())
    for step in range(STEPS):
        loss = model(torch.randn(BATCH, 1024, device="cuda")).square().mean()
        total += loss
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
