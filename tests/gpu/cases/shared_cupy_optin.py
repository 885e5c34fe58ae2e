# SPDX-License-Identifier: Apache-2.0
# The limit itself is raised beyond what any block can have.
# expect: cause=launch-config-shared-memory-limit certainty=certain,likely exit=1
# needs: cupy
import cupy
from helpers import raw

data = cupy.zeros(32, dtype=cupy.float32)
fill = raw.fill()
fill.max_dynamic_shared_size_bytes = 300000  # <- here
fill((1,), (32,), (data, cupy.float32(1)), shared_mem=300000)
