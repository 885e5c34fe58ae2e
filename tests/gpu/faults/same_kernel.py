# SPDX-License-Identifier: Apache-2.0
# Two lines launch the same kernel with the same arguments; the indices change in between. Unless
# something else tells the two apart, both lines must be named.
# expect: cause=illegal-access-out-of-bounds certainty=certain,likely exit=1 code=700 kernel=lookup
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

lookup = kernels.get("lookup")
table, out = torch.randn(1000, device="cuda"), torch.empty(64, device="cuda")
index = torch.arange(64, device="cuda")
args = (table.data_ptr(), index.data_ptr(), out.data_ptr(), np.int32(64))
lookup((1,), (64,), args)
torch.cuda.synchronize()

lookup((1,), (64,), args)  # <- here, <- either
index.fill_(1 << 41)
lookup((1,), (64,), args)  # <- here
torch.cuda.synchronize()
