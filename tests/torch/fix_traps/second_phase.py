# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity
# fix: words
"""Training of a second kind, whose first step does not fit: its backward never ran, but it was about to."""
import torch
import torch.nn as nn

torch.manual_seed(0)
SMALL, LARGE = 8192, 400000  #@cpu 8, 16
model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(1024, 1024), nn.ReLU()))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def warm_up():
    for step in range(3):
        model(torch.randn(SMALL, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_time_training():
    loss = model(torch.randn(LARGE, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()


warm_up()
test_time_training()
