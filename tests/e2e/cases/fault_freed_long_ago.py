# SPDX-License-Identifier: Apache-2.0
# Between the allocation, the free and the use there are more calls than a ring holds.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=fill
import cudrv

cudrv.init()
fill = cudrv.kernel("fill")
stream = cudrv.stream()
data = cudrv.alloc(8 << 20)
for _ in range(5000):
    cudrv.synchronize(stream)
cudrv.free(data)
for _ in range(5000):
    cudrv.synchronize(stream)
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.synchronize()
