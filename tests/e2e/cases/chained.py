# SPDX-License-Identifier: Apache-2.0
# The CUDA failure is wrapped in an exception of the program's own.
# expect: cause=oom-request-too-large exit=1
import cudrv


def step():
    return cudrv.alloc(1 << 40)  # <- here


cudrv.init()
try:
    step()
except cudrv.CudaError as error:
    raise ValueError("step 1 failed") from error
