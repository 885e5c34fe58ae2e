# SPDX-License-Identifier: Apache-2.0
# The largest launches that are still allowed, and a grid of 0, which CuPy itself raises to 1.
# expect-silent: exit=0
# needs: cupy
# same-output
import cupy
from helpers import raw
from resources_cupy import HEAVY

data = cupy.zeros(1024, dtype=cupy.float32)
one = cupy.float32(1)
fill = raw.fill()
fill((1, 1, 65535), (32,), (data, one))
fill((1, 65535), (32,), (data, one))
fill((70000,), (32,), (data, one))
fill((1,), (1024,), (data, one))
fill((1,), (1, 1, 64), (data, one))
fill((0,), (32,), (data, one))
fill((1,), (32,), (data, one), shared_mem=49152)
fill.max_dynamic_shared_size_bytes = 100000
fill((1,), (32,), (data, one), shared_mem=100000)
raw.kernel(raw.BOUNDED, "bounded")((1,), (128,), (data,))
raw.kernel(HEAVY, "heavy")((1,), (256,), (data, cupy.int32(8)))
cupy.cuda.Device().synchronize()
print("launched")
