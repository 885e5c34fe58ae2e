# SPDX-License-Identifier: Apache-2.0
# A negative index: 64 GiB before the start of the tensor, read only.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=shift
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

shift = kernels.get("shift")
x = torch.arange(4096, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
for by in (0, 0, 1 << 34, 0):
    shift((16,), (256,), (x.data_ptr(), out.data_ptr(), np.int64(by)))  # <- here
    out = out + 1
torch.cuda.synchronize()
