# SPDX-License-Identifier: Apache-2.0
# Two streams, one of them synchronized: its launches are cleared, those of the other are not.
# expect: cause=illegal-access-out-of-bounds certainty=likely exit=1 code=700
# gpu: sim:tiny,sticky=cuLaunchKernel:3:700
import cudrv

cudrv.init()
nop, one, two = cudrv.kernel("nop"), cudrv.stream(), cudrv.stream()
cudrv.launch(nop, (1,), (1,), stream=one)
cudrv.synchronize(one)
cudrv.launch(nop, (1,), (1,), stream=one)
cudrv.synchronize(one)
cudrv.launch(nop, (1,), (1,), stream=two)  # <- here
cudrv.synchronize(two)
