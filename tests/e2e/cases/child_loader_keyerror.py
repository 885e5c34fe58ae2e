# SPDX-License-Identifier: Apache-2.0
# The worker raises a KeyError because of the failure; the message in the parent is of a class derived from str.
# expect: cause=oom-request-too-large certainty=certain victim=no
# expect-other: cause=none victim=yes exit=1
import cudrv
import workers


def item(index):
    try:
        cudrv.init()
        cudrv.alloc(1 << 40)  # <- here
    except cudrv.CudaError as error:
        raise KeyError("sample %d" % index) from error


if __name__ == "__main__":
    for value in workers.load(item, range(4), "spawn"):
        print(value)
