# SPDX-License-Identifier: Apache-2.0
# Forked before CUDA starts, forked and left alone, and a child that executes another program.
# expect-silent: exit=0
import os
import sys

import cudrv


def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def use():
    cudrv.init()
    cudrv.free(cudrv.alloc(64))


if len(sys.argv) > 1:
    use()
    os._exit(0)
child(use)
use()
child(lambda: None)
child(lambda: os.execv(sys.executable, [sys.executable, __file__, "again"]))
