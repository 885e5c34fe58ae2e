# SPDX-License-Identifier: Apache-2.0
# A kernel writes 4 TiB past its tensor; the error is noticed many launches later.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=fill
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")


def step(x, offset):
    fill((4,), (256,), (x.data_ptr(), np.int64(offset), np.float32(1)))  # <- here
    return x * 2 + 1


x = torch.zeros(1024, device="cuda")
print("start", step(x, 0).sum().item())
for number in range(20):
    y = step(x, 1 << 40 if number == 7 else 0)
print("end", y.sum().item())
