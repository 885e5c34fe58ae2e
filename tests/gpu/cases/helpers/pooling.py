# SPDX-License-Identifier: Apache-2.0
"""A model as people write them: the failing call is three frames below the program's own."""
import torch.nn as nn
import torch.nn.functional as F


class Stem(nn.Module):
    def forward(self, x):
        return self.reduce(x)

    def reduce(self, x):
        return F.fractional_max_pool2d(x, kernel_size=2, output_size=2)  # <- here


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Stem()

    def forward(self, x):
        return self.stem(x)
