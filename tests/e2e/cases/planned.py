# SPDX-License-Identifier: Apache-2.0
# The driver fails a copy for an unknown reason.
# expect: cause=unknown exit=1
# gpu: sim:tiny,fail=cuMemcpyDtoH_v2:1:999
import cudrv

cudrv.init()
data = cudrv.alloc(64)
cudrv.read_floats(data, 4)  # <- here
