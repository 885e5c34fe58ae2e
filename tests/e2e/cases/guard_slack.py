# SPDX-License-Identifier: Apache-2.0
# One element past an allocation whose size is no multiple of 16: no error, but in guard mode a pattern is gone.
# expect: cause=overrun-behind-allocation certainty=certain exit=0
# options: --guard
import ctypes

import cudrv

cudrv.init()
store = cudrv.kernel("oob_store")
data = cudrv.alloc(4004)
cudrv.launch(store, (1,), (32,), cudrv.u64(data), ctypes.c_int64(970))  # <- here
cudrv.synchronize()
cudrv.free(data)
