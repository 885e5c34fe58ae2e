# SPDX-License-Identifier: Apache-2.0
# A CuPy kernel with 70,000 blocks along z.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1 kernel=fill code=1
# needs: cupy
import cupy
from helpers import raw


def main():
    data = cupy.zeros(32, dtype=cupy.float32)
    fill = raw.fill()
    fill((1, 1, 1), (32,), (data, cupy.float32(1)))
    fill((1, 1, 70000), (32,), (data, cupy.float32(2)))  # <- here


main()
