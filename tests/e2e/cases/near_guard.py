# SPDX-License-Identifier: Apache-2.0
# The last element of an allocation, and a NaN that the program wrote itself: nothing to find in guard mode.
# expect: cause=none exit=0
# options: --guard=values
import ctypes

import cudrv

cudrv.init()
fill, store = cudrv.kernel("fill"), cudrv.kernel("oob_store")
data = cudrv.alloc(4004)
cudrv.launch(fill, (1,), (1001,), cudrv.u64(data), cudrv.f32(float("nan")), cudrv.i32(1001))
cudrv.launch(store, (1,), (1,), cudrv.u64(data), ctypes.c_int64(1000))
print(cudrv.read_floats(data, 1001)[-1])
cudrv.free(data)
