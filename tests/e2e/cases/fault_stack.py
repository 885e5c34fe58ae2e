# SPDX-License-Identifier: Apache-2.0
# Endless recursion: CUDA calls it an illegal memory access.
# expect: cause=kernel-stack-overflow certainty=certain exit=1 code=700 kernel=stack_overflow
import cudrv

cudrv.init()
bad, data = cudrv.kernel("stack_overflow"), cudrv.alloc(64)
cudrv.launch(bad, (1,), (1,), cudrv.u64(data), cudrv.i32(1 << 20))  # <- here
cudrv.synchronize()
