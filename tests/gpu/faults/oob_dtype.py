# SPDX-License-Identifier: Apache-2.0
# The kernel wants 64-bit indices and gets 32-bit ones: it reads two of them as one.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=lookup
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

lookup = kernels.get("lookup")


def pick(table, index):
    out = torch.empty(index.numel(), device="cuda")
    lookup((1,), (128,), (table.data_ptr(), index.data_ptr(), out.data_ptr(), np.int32(index.numel())))  # <- here
    return out


table = torch.randn(4096, device="cuda")
index = torch.arange(1000, 1064, device="cuda")
print(torch.equal(pick(table, index), table[index]))
padded = torch.zeros(128, dtype=torch.int32, device="cuda")
padded[:64] = index
wrong = pick(table, padded[:64])
print(wrong.isnan().any().item())
