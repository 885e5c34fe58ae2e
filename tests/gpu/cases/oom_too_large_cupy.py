# SPDX-License-Identifier: Apache-2.0
# The same through CuPy's own allocator.
# expect: cause=oom-request-too-large exit=1
# needs: cupy
import cupy

cupy.zeros((1024, 1024, 1024, 1024), dtype=cupy.float32)  # <- here
