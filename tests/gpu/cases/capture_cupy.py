# SPDX-License-Identifier: Apache-2.0
# Memory is taken from the driver during a capture in global mode.
# expect: cause=graph-capture-illegal-op certainty=certain,likely exit=1
# needs: cupy
import cupy

stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeGlobal)
    big = cupy.empty(64 << 20, dtype=cupy.float32)  # <- here
    graph = stream.end_capture()
