# SPDX-License-Identifier: Apache-2.0
"""The same layer at two places, models that are made and thrown away, and modules that are made in each pass."""
import truth
import torch
from torch import nn


class Twice(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encode = nn.Linear(width, width)
        self.again = self.encode
        self.decode = nn.Sequential(nn.Dropout(0.1), nn.Linear(width, width))

    def forward(self, x):
        x = nn.GELU()(self.again(self.encode(x)))
        for _ in range(3):
            x = self.decode(x)
        return x


class Plain(nn.Module):
    """Of another shape than what it takes the place of in memory."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Dropout(0.1), nn.Linear(width, width)
        self.decode = nn.Identity()

    def forward(self, x):
        return self.decode(self.second(self.first(x)))


kept = []
for trial in range(6):
    model = (Twice if trial % 2 else Plain)(256 + 64 * trial).cuda()
    kept.append(model(torch.randn(64, 256 + 64 * trial, device="cuda")))
    if trial < 5:
        del model
truth.tell(model, Plain(8), parameters=False)
