# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""Trains with an exponential moving average of the weights, and builds an ensemble."""
import copy

import torch
import torch.nn as nn

WIDTH, DEPTH = 2048, 16  #@scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, device="cuda") for _ in range(DEPTH))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


class EMA:
    def __init__(self, model, decay=0.99):
        self.decay, self.shadow = decay, copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def train_epoch(model, ema, optimizer):
    for _ in range(4):
        x = torch.randn(64, WIDTH, device="cuda")
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)


model = Net()
ema, optimizer = EMA(model), torch.optim.SGD(model.parameters(), lr=0.01)
ensemble = []
for epoch in range(300):
    train_epoch(model, ema, optimizer)
    ensemble.append(copy.deepcopy(ema.shadow))  #@here
    if epoch % 10 == 0:
        print("epoch", epoch, "members", len(ensemble))
