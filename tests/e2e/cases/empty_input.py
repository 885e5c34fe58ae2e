# SPDX-License-Identifier: Apache-2.0
# An empty list gives a grid of 0.
# expect: cause=launch-config-empty-input certainty=certain,likely exit=1
import cudrv


def process(kernel, items):
    cudrv.launch(kernel, (len(items),), (32,))  # <- here


cudrv.init()
nop = cudrv.kernel("nop")
process(nop, [1, 2])
process(nop, [])
