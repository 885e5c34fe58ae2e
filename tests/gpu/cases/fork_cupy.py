# SPDX-License-Identifier: Apache-2.0
# The same where nobody warns: the driver itself refuses with "initialization error".
# expect: cause=fork-after-init certainty=certain,likely exit=1
# needs: cupy
import os
import sys

import cupy

cupy.zeros(4).sum()
pid = os.fork()
if pid == 0:
    cupy.zeros(8).sum()  # <- here
    os._exit(0)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
