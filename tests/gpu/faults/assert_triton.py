# SPDX-License-Identifier: Apache-2.0
# tl.device_assert in a Triton kernel.
# expect: cause=kernel-assert|index-out-of-range exit=1 code=710 kernel=rows
# needs: torch triton
# env: TRITON_DEBUG=1
import torch
import triton
import triton.language as tl


@triton.jit(debug=True)
def rows(index, out, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + at)
    tl.device_assert(row < limit, "row beyond the limit")
    tl.store(out + at, row * 2)


def double(index, limit):
    out = torch.empty_like(index)
    rows[(index.numel() // 128,)](index, out, limit, BLOCK=128)  # <- here
    return out


index = torch.arange(512, device="cuda")
print(double(index, 512).sum().item())
result = double(index, 500)
print((result + 1).sum().item())
