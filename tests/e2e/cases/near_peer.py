# SPDX-License-Identifier: Apache-2.0
# Memory of another device, after peer access was enabled: nothing is wrong with it.
# expect-silent: exit=0
# gpu: sim:tiny,devices=2
import cudrv

other = cudrv.init(1)
data = cudrv.alloc(4096)
cudrv.init(0)
cudrv.call("cuCtxEnablePeerAccess", other, 0)
fill = cudrv.kernel("fill")
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))
cudrv.synchronize()
