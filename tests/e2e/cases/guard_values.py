# SPDX-License-Identifier: Apache-2.0
# The grid leaves out the last elements; fresh memory is NaN in guard mode.
# expect: cause=uninitialized-read certainty=likely exit=0
# options: --guard=values
import cudrv

cudrv.init()
fill = cudrv.kernel("fill")
data = cudrv.alloc(4096)  # <- here
cudrv.launch(fill, (1,), (1000,), cudrv.u64(data), cudrv.f32(1), cudrv.i32(1024))
print(cudrv.read_floats(data, 1024)[-1])
