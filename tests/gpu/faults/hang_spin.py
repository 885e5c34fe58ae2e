# SPDX-License-Identifier: Apache-2.0
# A kernel waits for a flag that nobody sets. It gives up after 45 s by itself.
# expect: cause=kernel-hang kernel=wait_for
# needs: torch cupy
# options: --hang-after 5s
# skip: plain off sanitizer
# timeout: 100
import numpy as np
import torch
from helpers import kernels

wait_for = kernels.get("wait_for")
flag = torch.zeros(1, dtype=torch.int32, device="cuda")
x = torch.ones(100, device="cuda") * 2


def meet():
    wait_for((1,), (32,), (flag.data_ptr(), np.int32(45)))  # <- here


torch.cuda.synchronize()
meet()
x = x + 1
print(x.sum().item())
