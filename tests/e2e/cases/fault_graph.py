# SPDX-License-Identifier: Apache-2.0
# The kernel was captured at one line and runs at another.
# expect: cause=illegal-access-out-of-bounds exit=1 code=700 kernel=oob_store
import ctypes

import cudrv

cudrv.init()
store, stream, data = cudrv.kernel("oob_store"), cudrv.stream(), cudrv.alloc(4096)
cudrv.begin_capture(stream)
cudrv.launch(store, (1,), (32,), cudrv.u64(data), ctypes.c_int64(1 << 40), stream=stream)  # <- here
graph = cudrv.end_capture(stream)
cudrv.run_graph(graph, stream)  # <- replay
cudrv.synchronize(stream)
