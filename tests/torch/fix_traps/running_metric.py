# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention
# fix: edit kept
"""A moving average of the loss, for the progress bar; backward retains each graph."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 60  #@cpu 8, 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def fit():
    smooth = 0.0
    for step in range(STEPS):
        loss = model(torch.randn(BATCH, 1024, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        smooth = 0.9 * smooth + 0.1 * loss
        if step % 10 == 0:
            print(step, float(smooth))


fit()
