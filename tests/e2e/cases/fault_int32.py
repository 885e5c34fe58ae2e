# SPDX-License-Identifier: Apache-2.0
# An index computed in 32 bits becomes negative: the address lies 2^32 elements below the tensor.
# expect: cause=illegal-access-int32-overflow certainty=certain exit=1 code=700 kernel=index32
# gpu: sim:h200
import cudrv

cudrv.init()
index = cudrv.kernel("index32")
data = cudrv.alloc(5 << 32)
cudrv.launch(index, (1024,), (1024,), cudrv.u64(data), cudrv.i32(1 << 12))  # <- here
cudrv.synchronize()
