# SPDX-License-Identifier: Apache-2.0
"""Results that are kept: the card fills up, and the next allocation fails."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from gpu import Gpu  # noqa: E402


def evaluate(gpu, kept, rows):
    kept.append(gpu.empty(rows * 1024))


gpu, kept = Gpu(), []
for step in range(100):
    evaluate(gpu, kept, rows=2 << 20)
