# SPDX-License-Identifier: Apache-2.0
# A kernel of the user's own inside torch.compile; the compiled wrapper is generated code.
# expect: cause=launch-config-grid-limit exit=1
# needs: torch triton
# timeout: 180
import torch
import triton
import triton.language as tl


@triton.jit
def scale(data, out, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(data + at) * 2)


@torch.compile  # <- here
def double(x):  # <- here
    out = torch.empty_like(x)
    scale[(1, x.numel() // 16)](x, out, BLOCK=16)  # <- here
    return out + 1


def main():
    print(double(torch.ones(1600, device="cuda")).sum().item())
    double(torch.ones(70000 * 16, device="cuda"))  # <- here


main()
torch.cuda.synchronize()
