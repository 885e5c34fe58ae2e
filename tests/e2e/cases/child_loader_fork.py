# SPDX-License-Identifier: Apache-2.0
# The worker of a data loader uses CUDA after fork and lives on; its parent raises the exception again and ends.
# expect: cause=fork-after-init certainty=certain,likely victim=no
# expect-other: cause=none victim=yes exit=1
import cudrv
import workers


def item(index):
    if index == 2:
        cudrv.alloc(512)  # <- here
    return index


cudrv.init()
for value in workers.load(item, range(4)):
    print(value)
