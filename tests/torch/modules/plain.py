# SPDX-License-Identifier: Apache-2.0
"""Layers one behind the other."""
import truth
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(256, 512, device="cuda")).sum().backward()
    optimizer.step()
kept = model(torch.randn(256, 512, device="cuda"))
truth.tell(model)
