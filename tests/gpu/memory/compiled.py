# SPDX-License-Identifier: Apache-2.0
# A compiled model whose activations do not fit.
# expect: cause=oom-capacity certainty=certain,likely exit=1
# needs: torch triton
# alone
import torch
import torch.nn as nn

model = nn.Sequential(*(nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(12))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
step = torch.compile(model)


def train(rows):
    loss = step(torch.randn(rows, 4096, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


train(4096)
train(1 << 20)
