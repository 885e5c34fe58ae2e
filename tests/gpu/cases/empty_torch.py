# SPDX-License-Identifier: Apache-2.0
# An empty selection gives a grid of 0 blocks.
# expect: cause=launch-config-empty-input certainty=certain,likely exit=1 kernel=touch
# needs: torch
import torch
from helpers.kernels import load


def blocks_for(x):
    return (x.numel() + 255) // 256


def apply(kernel, x):
    kernel(grid=(blocks_for(x), 1, 1), block=(256, 1, 1), args=[x, x.numel()])  # <- here


touch = load()
scores = torch.zeros(1000, device="cuda")
apply(touch, scores)
apply(touch, scores[scores > 1])
