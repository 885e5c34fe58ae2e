# SPDX-License-Identifier: Apache-2.0
# The child begins with cuInit, as libraries do.
# expect: cause=fork-after-init certainty=certain,likely exit=4
import os
import sys

import cudrv

cudrv.init()
pid = os.fork()
if pid == 0:
    try:
        cudrv.init()  # <- here
    except cudrv.CudaError:
        os._exit(4)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
