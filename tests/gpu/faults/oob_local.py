# SPDX-License-Identifier: Apache-2.0
# Outside of a thread's own array.
# expect: cause=illegal-access-out-of-bounds exit=1 kernel=smooth
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

smooth = kernels.get("smooth")


def window(x, at):
    smooth((1,), (256,), (x.data_ptr(), np.int32(at)))  # <- here


x = torch.zeros(256, device="cuda")
window(x, 3)
print(x.isfinite().all().item())
x.zero_()
window(x, 1 << 26)
x = x + 1
print(x.isfinite().all().item())
