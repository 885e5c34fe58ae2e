# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad oom-capacity
# fix: words
"""A recurrent cell: the state goes from step to step with its graph, and backward runs through all of them."""
import torch
import torch.nn as nn

ROWS, STEPS = 32768, 200  #@cpu 8, 5
torch.manual_seed(0)
model = nn.GRUCell(256, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    hidden = torch.zeros(ROWS, 1024, device="cuda")
    total = 0.0
    for t in range(STEPS):
        hidden = model(torch.randn(ROWS, 256, device="cuda"), hidden)
        total += hidden.square().mean()
    total.backward()
    optimizer.step()
    optimizer.zero_grad()
