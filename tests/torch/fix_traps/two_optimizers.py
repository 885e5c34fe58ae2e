# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: edit backward
"""Two optimizers clear their gradients between the loop and backward."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 24  #@cpu 8, 4
torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(1024, 1024), nn.GELU()).cuda(), nn.Linear(1024, 64).cuda()
first, second = torch.optim.SGD(encoder.parameters(), lr=0.1), torch.optim.Adam(head.parameters())
for epoch in range(2):
    total, seen = 0.0, 0
    for step in range(STEPS):
        x = torch.randn(BATCH, 1024, device="cuda")
        loss = head(encoder(x)).square().mean()
        total += loss
        seen += len(x)
    mean = total / STEPS
    first.zero_grad()
    second.zero_grad()
    mean.backward()
    first.step()
    second.step()
    print(epoch, seen, mean.item())
