# SPDX-License-Identifier: Apache-2.0
# Tiles too large for a block's shared memory: Triton raises OutOfResources before any driver call.
# expect: cause=launch-config-shared-memory-limit exit=1
# needs: torch triton
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


def launch(a, b, c):
    multiply[(1,)](a, b, c, 256, 256, 128, num_warps=8)  # <- here


a = torch.ones(256, 128, device="cuda")
b = torch.ones(128, 256, device="cuda")
c = torch.empty(256, 256, device="cuda")
launch(a, b, c)
