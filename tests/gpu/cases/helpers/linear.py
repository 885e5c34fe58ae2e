# SPDX-License-Identifier: Apache-2.0
"""One layer, used by a program that forgot to move it."""
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, x):
        return F.linear(x, self.linear.weight, self.linear.bias)  # <- here
