# SPDX-License-Identifier: Apache-2.0
"""A two-layer network whose second layer does not fit the first."""
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, inside, given):
        super().__init__()
        self.first = nn.Linear(16, inside)
        self.second = nn.Linear(given, 4)

    def forward(self, x):
        hidden = self.first(x).relu()
        return self.second(hidden)  # <- here


class Wrapper(nn.Module):
    def __init__(self, inside, given):
        super().__init__()
        self.block = Block(inside, given)

    def forward(self, x):
        return self.block(x)
