# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention
# fix: edit kept
"""After each step, a second head is measured, and its score goes to a list with its graph."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 60  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scores = []
for step in range(STEPS):
    x = torch.randn(BATCH, 1024, device="cuda")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    score = (model(x) - x).abs().mean()
    scores.append(score)
print("mean score", sum(scores).item() / len(scores))
