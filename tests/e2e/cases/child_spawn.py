# SPDX-License-Identifier: Apache-2.0
# A spawned rank fails; the exception that ends its parent repeats the error, which is not a second failure.
# expect: cause=kernel-trap certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import cudrv
import workers


def item(index):
    cudrv.init()
    if index == 1:
        cudrv.launch(cudrv.kernel("trap"), (1,), (1,))  # <- here
        cudrv.synchronize()


if __name__ == "__main__":
    workers.spawn(item, 2)
