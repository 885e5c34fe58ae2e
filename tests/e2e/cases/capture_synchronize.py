# SPDX-License-Identifier: Apache-2.0
# A synchronization inside a capture.
# expect: cause=graph-capture-illegal-op certainty=certain,likely exit=1
import cudrv

cudrv.init()
nop, side = cudrv.kernel("nop"), cudrv.stream()
cudrv.begin_capture(side)  # <- capture
cudrv.launch(nop, (1,), (1,), stream=side)
cudrv.synchronize(side)  # <- here
cudrv.end_capture(side)
