# SPDX-License-Identifier: Apache-2.0
# The worker's traceback is longer than the message that a failure has room for: the error is at its end.
# expect: cause=oom-request-too-large certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import cudrv
import workers


def even(depth):
    return odd(depth - 1) if depth else cudrv.alloc(1 << 40)  # <- here


def odd(depth):
    return even(depth - 1)


def item(index):
    cudrv.init()
    even(30)


if __name__ == "__main__":
    for value in workers.load(item, range(4), "spawn"):
        print(value)
