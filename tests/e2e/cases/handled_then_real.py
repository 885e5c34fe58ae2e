# SPDX-License-Identifier: Apache-2.0
# A handled failure, then a different one that ends the program.
# expect: cause=launch-config-block-limit exit=1
# expect-note: cause=device-ordinal-out-of-range
import cudrv

try:
    cudrv.init(5)  # <- note
except cudrv.CudaError:
    cudrv.init(0)
cudrv.launch(cudrv.kernel("nop"), (1,), (2000,))  # <- here
