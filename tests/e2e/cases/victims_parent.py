# SPDX-License-Identifier: Apache-2.0
# A worker faults; its parent, which also uses CUDA, finds the pipe to it closed.
# expect: cause=misaligned-address certainty=certain exit=1 code=716 victim=no
# expect-other: cause=none victim=yes
import subprocess
import sys

import cudrv

cudrv.init()
if len(sys.argv) > 1:
    store = cudrv.kernel("misaligned")
    cudrv.launch(store, (1,), (32,), cudrv.u64(cudrv.alloc(4096)))  # <- here
    cudrv.synchronize()
worker = subprocess.Popen([sys.executable, __file__, "work"], stdout=subprocess.PIPE)
if not worker.stdout.readline():
    worker.wait()
    raise EOFError("the worker said nothing")
