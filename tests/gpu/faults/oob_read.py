# SPDX-License-Identifier: Apache-2.0
# An index of a table comes from a file that is damaged: one entry of 32 is absurd.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=lookup
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

lookup = kernels.get("lookup")


def load(damaged):
    index = torch.arange(32)
    if damaged:
        index[19] = 1 << 41
    return index.cuda()


table, out = torch.randn(1000, device="cuda"), torch.empty(32, device="cuda")
for index in (load(False), load(True)):
    lookup((1,), (64,), (table.data_ptr(), index.data_ptr(), out.data_ptr(), np.int32(32)))  # <- here
    result = out.cumsum(0)
print(result[-1].item() > 0)
