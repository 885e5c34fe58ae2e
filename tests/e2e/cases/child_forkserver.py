# SPDX-License-Identifier: Apache-2.0
# The worker is not a child of the process that raises its exception again: its traceback tells.
# expect: cause=launch-config-grid-limit certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import cudrv


def item(index):
    cudrv.init()
    if index == 2:
        cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))  # <- here
    return index


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        print(list(pool.map(item, range(4))))
