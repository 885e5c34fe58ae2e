# SPDX-License-Identifier: Apache-2.0
# A kernel gets the address of ordinary host memory.
# expect: cause=illegal-access-host-pointer certainty=certain exit=1 code=700 kernel=fill
import ctypes

import cudrv

cudrv.init()
fill = cudrv.kernel("fill")
data = cudrv.alloc(4096)
array = (ctypes.c_float * 1000000)()
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))
cudrv.launch(fill, (1,), (32,), cudrv.u64(ctypes.addressof(array)), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.synchronize()
