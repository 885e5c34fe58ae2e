# SPDX-License-Identifier: Apache-2.0
# The limit is raised beyond what the device has.
# expect: cause=launch-config-shared-memory-limit exit=1 api=cuFuncSetAttribute
import cudrv

cudrv.init()
nop = cudrv.kernel("nop")
cudrv.allow_shared(nop, 200000)  # <- here
cudrv.launch(nop, (1,), (32,), shared=200000)
