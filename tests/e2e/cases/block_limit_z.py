# SPDX-License-Identifier: Apache-2.0
# 128 along z, where 64 is the limit.
# expect: cause=launch-config-block-limit certainty=certain exit=1
import cudrv

cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (1, 1, 128))  # <- here
