# SPDX-License-Identifier: Apache-2.0
# A handled failure, then the program dies of something else.
# expect: cause=none exit=1
# expect-note: cause=device-ordinal-out-of-range
import cudrv

try:
    cudrv.init(5)  # <- note
except cudrv.CudaError:
    cudrv.init(0)
print({"lr": 1}["momentum"])
