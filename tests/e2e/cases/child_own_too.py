# SPDX-License-Identifier: Apache-2.0
# The parent handled a failure of the same kind before: the one that ended it is still the worker's.
# expect: cause=oom-request-too-large certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import cudrv
import workers


def item(index):
    cudrv.init()
    cudrv.alloc(1 << 40)  # <- here


if __name__ == "__main__":
    cudrv.init()
    try:
        cudrv.alloc(1 << 41)
    except cudrv.CudaError:
        pass
    for value in workers.load(item, range(4), "spawn"):
        print(value)
