# SPDX-License-Identifier: Apache-2.0
# A kernel traps: only one line launched work since the last successful synchronization.
# expect: cause=kernel-trap exit=1 code=719
import cudrv

cudrv.init()
nop, trap = cudrv.kernel("nop"), cudrv.kernel("trap")
for _ in range(3):
    cudrv.launch(nop, (1,), (1,))
cudrv.synchronize()
cudrv.launch(trap, (1,), (1,))  # <- here
cudrv.synchronize()
