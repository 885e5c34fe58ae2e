# SPDX-License-Identifier: Apache-2.0
# The memory is on one device, the kernel runs on another, and peer access is off.
# expect: cause=illegal-access-wrong-device certainty=certain exit=1 code=700 kernel=fill
# gpu: sim:tiny,devices=3
import cudrv

cudrv.init(2)
data = cudrv.alloc(4096)
cudrv.init(1)
fill = cudrv.kernel("fill")
mine = cudrv.alloc(4096)
cudrv.launch(fill, (1,), (32,), cudrv.u64(mine), cudrv.f32(1), cudrv.i32(32))
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.synchronize()
