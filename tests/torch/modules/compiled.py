# SPDX-License-Identifier: Apache-2.0
"""A model for torch.compile, whose graph is run without a compiler."""
import truth
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.body(x))


model = torch.compile(Net().cuda(), backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(128, 512, device="cuda")).sum().backward()
    optimizer.step()
kept = model(torch.randn(128, 512, device="cuda"))
truth.tell(model)
