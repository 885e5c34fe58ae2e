# SPDX-License-Identifier: Apache-2.0
# A tensor that was never moved to the GPU: its address is one of the CPU. Where the driver can let a
# GPU read such memory (HMM, ATS) this is no error, and the program is skipped.
# expect: cause=illegal-access-host-pointer exit=1 code=700 kernel=shift
# needs: torch cupy private-host-memory
import numpy as np
import torch
from helpers import kernels

shift = kernels.get("shift")


def copy(source, target):
    shift((4,), (256,), (source.data_ptr(), target.data_ptr(), np.int64(0)))  # <- here


weights = torch.ones(1 << 20)
out = torch.zeros(1024, device="cuda")
copy(weights.cuda(), out)
print(out.sum().item())
copy(weights, out)
out = out + 1
print(out.sum().item())
