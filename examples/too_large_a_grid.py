# SPDX-License-Identifier: Apache-2.0
"""A batch of 70,000 in the third dimension of the grid: most batches work, this one does not."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from gpu import Gpu  # noqa: E402


def normalize(gpu, data, batch):
    gpu.launch("scale", (1, 1, batch), (256, 1, 1), data, ctypes.c_float(0.5), ctypes.c_int(256))


def epoch(gpu, batches):
    data = gpu.empty(256)
    for batch in batches:
        normalize(gpu, data, batch)
        gpu.synchronize()
        print(f"batch of {batch}: done")


epoch(Gpu(), [512, 4096, 70000])
