# SPDX-License-Identifier: Apache-2.0
# 2,048 threads in a block.
# expect: cause=launch-config-block-limit certainty=certain,likely exit=1 kernel=fill
# needs: cupy
import cupy
from helpers import raw

BLOCK = (2048,)


class Filler:
    def __init__(self):
        self.kernel = raw.fill()
        self.data = cupy.zeros(4096, dtype=cupy.float32)

    def __call__(self, value):
        self.kernel((1,), BLOCK, (self.data, cupy.float32(value)))  # <- here


Filler()(3)
