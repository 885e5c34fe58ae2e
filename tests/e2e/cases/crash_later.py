# SPDX-License-Identifier: Apache-2.0
# A failure is handled, and the program crashes later: nothing says that one led to the other.
# expect: cause=launch-config-grid-limit certainty=likely exit=139
import ctypes

import cudrv

cudrv.init()
try:
    cudrv.launch(cudrv.kernel("fill"), (1, 80000, 1), (1,), cudrv.u64(0), cudrv.f32(1), cudrv.i32(1))
except cudrv.CudaError:
    pass
ctypes.string_at(0)
