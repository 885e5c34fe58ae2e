# SPDX-License-Identifier: Apache-2.0
# One request for more than the whole card.
# expect: cause=oom-request-too-large certainty=certain,likely exit=1 code=2
import cudrv


def buffer(rows, columns):
    return cudrv.alloc(rows * columns * 4)  # <- here


cudrv.init()
buffer(1 << 20, 1 << 10)
