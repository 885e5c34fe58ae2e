# SPDX-License-Identifier: Apache-2.0
# The exception that ends the program carries the worker's exception as an argument and says nothing itself.
# expect: cause=launch-config-grid-limit certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import cudrv


class TaskError(Exception):
    """Its message is made by __str__, which a recorder must not call."""

    def __str__(self):
        return "a task failed"


def item(index):
    cudrv.init()
    if index == 2:
        cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))  # <- here
    return index


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            print(list(pool.map(item, range(4))))
        except cudrv.CudaError as error:
            raise TaskError("task", [error]) from None
