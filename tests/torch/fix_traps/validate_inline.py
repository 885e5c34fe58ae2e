# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad
# fix: words no_grad
"""The same, in one script without functions."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, HELD_OUT = 8192, 260000  #@cpu 8, 32
torch.manual_seed(0)
model = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.ReLU())), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for step in range(4):
        x, y = torch.randn(BATCH, 1024, device="cuda"), torch.arange(BATCH, device="cuda") % 10
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    held_out = torch.randn(HELD_OUT, 1024, device="cuda")
    predicted = model(held_out).argmax(1)
    print(epoch, predicted.bincount(minlength=10).tolist())
