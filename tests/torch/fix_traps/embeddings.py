# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad oom-capacity
# fix: words backward
"""Contrastive learning: the embeddings of all parts are compared with each other, and backward needs them all."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, PARTS = 16384, 60  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 4096), nn.GELU(), nn.Linear(4096, 16)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    embeddings = []
    for part in range(PARTS):
        out = model(torch.randn(ROWS, 512, device="cuda"))
        embeddings.append(F.normalize(out, dim=1).mean(0))
    table = torch.stack(embeddings)
    loss = F.cross_entropy(table @ table.T / 0.1, torch.arange(PARTS, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
