# SPDX-License-Identifier: Apache-2.0
# A load of 16 bytes from an address that is a multiple of 4 only.
# expect: cause=misaligned-address certainty=certain exit=1 code=716 kernel=load4
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

load4 = kernels.get("load4")


def copy(x, skip):
    out = torch.empty(64, 4, device="cuda")
    load4((1,), (64,), (x.data_ptr(), out.data_ptr(), np.int32(skip)))  # <- here
    return out


x = torch.arange(1024, device="cuda", dtype=torch.float32)
print(copy(x, 4).sum().item())
y = copy(x, 1)
print((y + 1).sum().item())
