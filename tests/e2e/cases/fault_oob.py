# SPDX-License-Identifier: Apache-2.0
# Far outside every allocation, some launches before it is noticed.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=oob_store
import ctypes

import cudrv

cudrv.init()
fill, store = cudrv.kernel("fill"), cudrv.kernel("oob_store")


def step(data, offset):
    cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))
    cudrv.launch(store, (2,), (64,), cudrv.u64(data), ctypes.c_int64(offset))  # <- here
    cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))


data = cudrv.alloc(4096)
for number in range(5):
    step(data, 1 << 40 if number == 3 else 0)
cudrv.synchronize()
