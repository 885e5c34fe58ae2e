# SPDX-License-Identifier: Apache-2.0
# torch.compile: the generated kernel asserts that its index is in range.
# expect: cause=index-out-of-range|kernel-assert exit=1 code=710
# needs: torch triton
# env: TORCHINDUCTOR_COMPILE_THREADS=1
# timeout: 180
import torch


@torch.compile  # <- here
def pick(table, index):  # <- here
    rows = table[index]  # <- here
    return rows * 2 + 1  # <- here


table = torch.randn(64, 32, device="cuda")
index = torch.arange(48, device="cuda")
print(pick(table, index).shape)
index[7] = 64
result = pick(table, index)  # <- here
for _ in range(5):
    result = result + 1
print(result.sum().item())
