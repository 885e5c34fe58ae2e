# SPDX-License-Identifier: Apache-2.0
# A histogram: one value is far beyond the last bin. The compiler makes a reduction of the atomicAdd.
# No thread waits for a reduction: all may be gone when the dump is made, and their addresses with them.
# expect: cause=illegal-access-out-of-bounds exit=1 code=700 kernel=histogram
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

histogram = kernels.get("histogram")


def count(values, bins):
    n = values.numel()
    histogram((n // 256 + 1,), (256,), (values.data_ptr(), bins.data_ptr(), np.int32(n)))  # <- here


bins = torch.zeros(100, dtype=torch.int32, device="cuda")
values = torch.arange(1000, device="cuda") % 100
count(values, bins)
print(bins.sum().item())
values[777] = 1 << 40
count(values, bins)
total = bins.sum()
print(total.item())
