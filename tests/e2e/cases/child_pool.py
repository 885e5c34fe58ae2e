# SPDX-License-Identifier: Apache-2.0
# A worker of a pool fails and lives on until the pool is terminated.
# expect: cause=launch-config-grid-limit certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import multiprocessing

import cudrv


def item(index):
    cudrv.init()
    if index == 2:
        cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))  # <- here
    return index


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(item, range(4)))
