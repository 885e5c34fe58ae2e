# SPDX-License-Identifier: Apache-2.0
# 65,536 is the first number that is too large.
# expect: cause=launch-config-grid-limit certainty=certain exit=1
import cudrv

cudrv.init()
nop = cudrv.kernel("nop")
for rows in (65535, 65536):
    cudrv.launch(nop, (1, rows), (1,))  # <- here
