# SPDX-License-Identifier: Apache-2.0
# The driver says that the GPU's memory is defective: no line of the program is to blame.
# expect: cause=ecc-hardware-fault certainty=certain exit=1 code=214
# gpu: sim:h200,sticky=cuLaunchKernel:2:214
import cudrv

cudrv.init()
nop = cudrv.kernel("nop")
cudrv.launch(nop, (1,), (1,))
cudrv.launch(nop, (1,), (1,))
cudrv.synchronize()
