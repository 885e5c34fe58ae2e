# SPDX-License-Identifier: Apache-2.0
# Outside of the block's shared memory, which has an address space of its own.
# expect: cause=illegal-access-out-of-bounds exit=1 kernel=reverse
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

reverse = kernels.get("reverse")


def flip(x, skip):
    reverse((1,), (256,), (x.data_ptr(), np.int32(skip)))  # <- here


x = torch.arange(256, device="cuda", dtype=torch.float32)
flip(x, 0)
print(x[0].item())
flip(x, 1 << 20)
x = x * 2
print(x[0].item())
