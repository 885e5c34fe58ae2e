# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad oom-capacity
# fix: words
"""All heads read the same features: backward in the loop would run through the trunk a second time."""
import torch
import torch.nn as nn

ROWS, HEADS = 65536, 40  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU()).cuda()
heads = nn.ModuleList(nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 8)) for _ in range(HEADS)).cuda()
optimizer = torch.optim.SGD([*model.parameters(), *heads.parameters()], lr=0.1)
for step in range(2):
    features = model(torch.randn(ROWS, 256, device="cuda"))
    total = 0.0
    for head in heads:
        total += head(features).square().mean()
    total.backward()
    optimizer.step()
    optimizer.zero_grad()
