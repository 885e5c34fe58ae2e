# SPDX-License-Identifier: Apache-2.0
"""Triton kernels that write a whole block, however long the tensor is (guard_programs.py)."""
import triton
import triton.language as tl


@triton.jit
def fill_all(out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, at * 1.0)


@triton.jit
def fill_at(address, BLOCK: tl.constexpr):
    out = address.to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + at, at * 1.0)
