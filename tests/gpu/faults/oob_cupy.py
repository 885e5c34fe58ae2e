# SPDX-License-Identifier: Apache-2.0
# CuPy alone, without PyTorch.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=fill
# needs: cupy
import cupy
import numpy as np
from helpers import kernels

fill = kernels.get("fill")


def launch(x, offset):
    fill((8,), (128,), (x, np.int64(offset), np.float32(1)))  # <- here


x = cupy.zeros(1024, dtype=cupy.float32)
launch(x, 0)
print(float(x.sum()))
launch(x, 1 << 36)
y = x + 1
print(float(y.sum()))
