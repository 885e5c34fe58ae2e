# SPDX-License-Identifier: Apache-2.0
# The pointer outlives its memory.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=fill
import cudrv

cudrv.init()
fill = cudrv.kernel("fill")
data = cudrv.alloc(8 << 20)
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))
cudrv.synchronize()
cudrv.free(data)
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.synchronize()
