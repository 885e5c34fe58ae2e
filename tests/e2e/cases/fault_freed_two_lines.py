# SPDX-License-Identifier: Apache-2.0
# The memory is already freed when either of two lines uses it, in the same way.
# expect: cause=illegal-access-use-after-free certainty=likely exit=1 code=700 kernel=fill
import cudrv

cudrv.init()
fill, data = cudrv.kernel("fill"), cudrv.alloc(8 << 20)
cudrv.free(data)
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.launch(fill, (1,), (32,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(32))  # <- here, <- either
cudrv.synchronize()
