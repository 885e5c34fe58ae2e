# SPDX-License-Identifier: Apache-2.0
# Code of the same major version, older PTX, and a lookup that the program expects to fail.
# expect-silent: exit=0
import cudrv

cudrv.init()
cudrv.launch(cudrv.kernel("nop", target="sm_80"), (1,), (1,))
found = cudrv.module(cudrv.image("nop", target="compute_86 ptx 9.0"))
try:
    cudrv.function(found, "absent")
except cudrv.CudaError as error:
    print(error.code)
cudrv.synchronize()
