# SPDX-License-Identifier: Apache-2.0
# The size of an element is multiplied in three times over: 23 GiB past a tensor of 1 GiB.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=fill
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")


def clear_tail(x, first):
    fill((1,), (256,), (x.data_ptr(), np.int64(first), np.float32(0)))  # <- here


x = torch.ones(256 << 20, device="cuda")
clear_tail(x, 96 << 20)
torch.cuda.synchronize()
clear_tail(x, (96 << 20) * x.element_size() ** 3)
head = x[:1024] + 1
print(head.sum().item())
