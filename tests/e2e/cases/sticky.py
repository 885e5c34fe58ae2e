# SPDX-License-Identifier: Apache-2.0
# A kernel traps: no rule of this version explains it, and that is said.
# expect: cause=unknown exit=1 code=719
import cudrv

cudrv.init()
cudrv.launch(cudrv.kernel("trap"), (1,), (1,))
cudrv.synchronize()
