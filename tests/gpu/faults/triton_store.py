# SPDX-License-Identifier: Apache-2.0
# A Triton kernel without a mask stores far outside.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=put
# needs: torch triton
import torch
import triton
import triton.language as tl


@triton.jit
def put(out, offset, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offset + at, at.to(tl.float32))


def fill(out, offset):
    put[(out.numel() // 256,)](out, offset, BLOCK=256)  # <- here


x = torch.zeros(1024, device="cuda")
fill(x, 0)
print(x.sum().item())
fill(x, 1 << 40)
y = x + 1
print(y.sum().item())
