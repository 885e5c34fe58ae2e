# SPDX-License-Identifier: Apache-2.0
"""Results that are kept: the card fills up, and the next allocation fails."""
from gpu import Gpu


def evaluate(gpu, kept, rows):
    kept.append(gpu.empty(rows * 1024))


gpu, kept = Gpu(), []
for step in range(100):
    evaluate(gpu, kept, rows=2 << 20)
