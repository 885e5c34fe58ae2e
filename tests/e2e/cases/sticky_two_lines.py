# SPDX-License-Identifier: Apache-2.0
# Two lines launched the same kernel in the same way without synchronizing in between: there is no telling which, so both are reported.
# expect: cause=illegal-access-out-of-bounds certainty=likely exit=1 code=700
# gpu: sim:tiny,sticky=cuLaunchKernel:2:700
import cudrv

cudrv.init()
nop = cudrv.kernel("nop")
cudrv.launch(nop, (1,), (1,))
cudrv.launch(nop, (1,), (1,))  # <- here
cudrv.synchronize()
