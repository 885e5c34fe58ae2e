# SPDX-License-Identifier: Apache-2.0
# A worker thread fails, the main thread raises its exception again.
# expect: cause=launch-config-block-limit exit=1 function=work
from concurrent.futures import ThreadPoolExecutor

import cudrv


def work(context, kernel, threads):
    cudrv.call("cuCtxSetCurrent", context)
    cudrv.launch(kernel, (1,), (threads,))  # <- here


context = cudrv.init()
nop = cudrv.kernel("nop")
with ThreadPoolExecutor(3) as pool:
    for done in [pool.submit(work, context, nop, n) for n in (32, 64, 4096)]:
        done.result()
