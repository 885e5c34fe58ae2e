# SPDX-License-Identifier: Apache-2.0
"""Triton kernels that fail an assertion, each in another way (triton_asserts.py)."""
import torch
import triton
import triton.language as tl


@triton.jit(debug=True)
def always(out):
    tl.device_assert(tl.program_id(0) < 0, "never true")
    tl.store(out, 1)


@triton.jit(debug=True)
def masked(out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_assert(at < 0, "true where nobody looks", mask=at >= BLOCK // 2)
    tl.store(out + at, at)


@triton.jit(debug=True)
def checked(values, out, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + at)
    tl.device_assert(value < limit, "a value is too large")
    tl.store(out + at, value)


@triton.jit
def add(a, b, out):
    tl.store(out, tl.load(a) + tl.load(b))


@triton.jit
def multiply(a, b, out):
    tl.store(out, tl.load(a) * tl.load(b))


def number(value, dtype=torch.int32):
    return torch.tensor([value], dtype=dtype, device="cuda")


def over(kernel, a, b):
    kernel[(1,)](a, b, torch.empty_like(a), debug=True)     # debug: overflows are checked


def rows(blocks, limit):
    values = torch.arange(128 * blocks, device="cuda")
    checked[(blocks,)](values, torch.empty_like(values), limit, BLOCK=128)


def label():
    torch.nn.functional.cross_entropy(torch.zeros(4, 3, device="cuda"), torch.tensor([0, 1, 2, 9], device="cuda"))


FAILING = {
    "always": lambda: always[(1,)](torch.empty(1, dtype=torch.int32, device="cuda")),
    "masked": lambda: masked[(1,)](torch.empty(128, dtype=torch.int32, device="cuda"), BLOCK=128),
    "loaded": lambda: rows(8, 500),
    "one_lane": lambda: rows(1, 127),
    "many_blocks": lambda: rows(4096, 1),
    "overflow_add": lambda: over(add, number(2**31 - 1), number(1)),
    "overflow_mul": lambda: over(multiply, number(2**30), number(4)),
    "overflow_narrow": lambda: over(add, number(2**15 - 1, torch.int16), number(1, torch.int16)),
    "pytorch": label,
}


def failing(kind):
    """A function that launches the kernel."""
    return FAILING[kind]
