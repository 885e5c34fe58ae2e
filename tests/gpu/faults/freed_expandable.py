# SPDX-License-Identifier: Apache-2.0
# The same with expandable segments: the memory is unmapped, its addresses stay reserved because the
# tensor before it in the segment lives on.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=fill
# needs: torch cupy
# env: PYTORCH_ALLOC_CONF=expandable_segments:True
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")


def use(pointer):
    fill((8,), (256,), (pointer, np.int64(0), np.float32(1)))  # <- here


y = torch.ones(10, device="cuda")
kept = torch.zeros(10 << 20, device="cuda")
x = torch.zeros(100 << 20, device="cuda")
pointer = x.data_ptr()
use(pointer)
print(x[:4096].sum().item())
del x
torch.cuda.empty_cache()
use(pointer)
print((y + y).sum().item(), kept[0].item())
