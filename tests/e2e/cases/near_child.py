# SPDX-License-Identifier: Apache-2.0
# A worker handles a failure, and later raises something else that ends its parent: the failure stays handled.
# expect-note: cause=oom-request-too-large exit=1
import cudrv
import workers


def item(index):
    cudrv.init()
    try:
        cudrv.alloc(1 << 40)  # <- note
    except cudrv.CudaError:
        pass
    if index == 2:
        raise KeyError("label")
    return index


if __name__ == "__main__":
    for value in workers.load(item, range(4), "spawn"):
        print(value)
