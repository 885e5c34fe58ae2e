# SPDX-License-Identifier: Apache-2.0
"""A Triton kernel of which one program stores one number far beyond its tensor (late_program.py)."""
import triton
import triton.language as tl


@triton.jit
def stray(out, far):
    if tl.program_id(0) == 0:
        tl.store(out + far, 1.0)
