# SPDX-License-Identifier: Apache-2.0
# Memory of another library: CuPy's pool gives it back while PyTorch code still has the address.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=shift
# needs: torch cupy
import cupy
import numpy as np
import torch
from helpers import kernels

shift = kernels.get("shift")


def read(pointer):
    out = torch.empty(1024, device="cuda")
    shift((4,), (256,), (pointer, out.data_ptr(), np.int64(0)))  # <- here
    return out


source = cupy.ones(32 << 20, dtype=cupy.float32)
pointer = source.data.ptr
print(read(pointer).sum().item())
del source
cupy.get_default_memory_pool().free_all_blocks()
result = read(pointer) + 1
print(result.sum().item())
