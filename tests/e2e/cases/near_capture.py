# SPDX-License-Identifier: Apache-2.0
# Launches are captured and replayed.
# expect-silent: exit=0
import cudrv

cudrv.init()
data, fill, side = cudrv.alloc(64), cudrv.kernel("fill"), cudrv.stream()
cudrv.begin_capture(side)
cudrv.launch(fill, (1,), (16,), cudrv.u64(data), cudrv.f32(3), cudrv.i32(16), stream=side)
graph = cudrv.end_capture(side)
cudrv.run_graph(graph, side)
cudrv.synchronize(side)
print(sum(cudrv.read_floats(data, 16)))
