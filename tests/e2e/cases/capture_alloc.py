# SPDX-License-Identifier: Apache-2.0
# Memory is allocated from the driver inside a capture.
# expect: cause=graph-capture-illegal-op certainty=certain,likely exit=1 code=900
import cudrv


def step(kernel, side):
    cudrv.launch(kernel, (1,), (1,), stream=side)
    return cudrv.alloc(1 << 20)  # <- here


cudrv.init()
side = cudrv.stream()
nop = cudrv.kernel("nop")
cudrv.begin_capture(side)
step(nop, side)
