# SPDX-License-Identifier: Apache-2.0
# Out of memory once, freed some, continued: not a failure.
# expect-note: cause=oom-capacity,oom-request-too-large exit=0
import cudrv

cudrv.init()
first = cudrv.alloc(40 << 20)
try:
    cudrv.alloc(40 << 20)  # <- note
except cudrv.CudaError:
    cudrv.free(first)
    print(cudrv.alloc(40 << 20) > 0)
