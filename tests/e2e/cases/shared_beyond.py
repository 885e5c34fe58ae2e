# SPDX-License-Identifier: Apache-2.0
# More than a block on this GPU can ever have: no opt-in would help.
# expect: cause=launch-config-shared-memory-limit certainty=certain exit=1
import cudrv

cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (32,), shared=200000)  # <- here
