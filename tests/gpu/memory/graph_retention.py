# SPDX-License-Identifier: Apache-2.0
# A training loop keeps every loss with its graph, for a plot.
# expect: cause=oom-graph-retention certainty=certain,likely exit=1
# needs: torch
# alone
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 4096)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
history = []


def step(x):
    loss = model(x).square().mean()  # <- here  <- forward  <- culprit
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    history.append(loss)


for _ in range(1000):
    step(torch.randn(65536, 4096, device="cuda"))
