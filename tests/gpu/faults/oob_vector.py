# SPDX-License-Identifier: Apache-2.0
# A store of 16 bytes, far outside.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=store4
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

store4 = kernels.get("store4")


def put(x, at):
    store4((1,), (x.shape[0],), (x.data_ptr(), np.int64(at), np.float32(2)))  # <- here


x = torch.zeros(128, 4, device="cuda")
put(x, 0)
print(x.sum().item())
put(x, 1 << 38)
x = x + 1
print(x.sum().item())
