# SPDX-License-Identifier: Apache-2.0
# The program reports the failure in its own way and picks its own status.
# expect: cause=oom-request-too-large exit=9
import sys

import cudrv

cudrv.init()
try:
    cudrv.alloc(1 << 40)  # <- here
except cudrv.CudaError:
    sys.exit(9)
