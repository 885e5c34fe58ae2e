# SPDX-License-Identifier: Apache-2.0
# Row times stride overflows 32 bits in the ninth row of a tensor of 10 GB.
# expect: cause=illegal-access-int32-overflow certainty=likely,certain exit=1 code=700 kernel=scale_rows
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

scale_rows = kernels.get("scale_rows")


def double(x, rows):
    scale_rows((rows,), (128,), (x.data_ptr(), np.int32(x.stride(0)), np.float32(2)))  # <- here


x = torch.ones(9, (1 << 28) + 4096, device="cuda")
double(x, 8)
print(x[7, 0].item())
double(x, 9)
last = x[8, :128] + 1
print(last.sum().item())
