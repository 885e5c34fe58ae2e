# SPDX-License-Identifier: Apache-2.0
# A kernel compiled for at most 128 threads is launched with 256.
# expect: cause=launch-config-launch-bounds certainty=certain,likely exit=1 kernel=bounded
# needs: cupy
import cupy
from helpers import raw

data = cupy.zeros(256, dtype=cupy.float32)
bounded = raw.kernel(raw.BOUNDED, "bounded")
bounded((1,), (128,), (data,))
bounded((1,), (256,), (data,))  # <- here
