# SPDX-License-Identifier: Apache-2.0
# It found no GPU and continued without one; what it died of has nothing to do with that.
# gpu: sim:tiny,devices=0
# expect-silent: exit=1
import cudrv

try:
    cudrv.init(0)
except cudrv.CudaError:
    pass
print({"lr": 1}["momentum"])
