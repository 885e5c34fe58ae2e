# SPDX-License-Identifier: Apache-2.0
# A forked child uses CUDA after its parent did. The parent ends with 0.
# expect: cause=fork-after-init certainty=certain,likely exit=0
import os

import cudrv

cudrv.init()
data = cudrv.alloc(256)
pid = os.fork()
if pid == 0:
    cudrv.alloc(512)  # <- here
    os._exit(0)
print("child:", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
