# SPDX-License-Identifier: Apache-2.0
# Changes in place that autograd allows, a graph that is kept, updates without gradients.
# expect-silent: exit=0
# needs: torch
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 1)).cuda()
hidden = torch.zeros(4, 8, device="cuda")
for step in range(3):
    x = hidden + 1
    x[0] = 0
    y = model(x)
    y += 1
    a, b = y.sum(), y.pow(2).sum()
    a.backward(retain_graph=True)
    b.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    hidden = x.detach()
