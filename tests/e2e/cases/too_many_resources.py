# SPDX-License-Identifier: Apache-2.0
# 162 registers per thread do not allow 1,024 threads.
# expect: cause=too-many-resources certainty=certain,likely exit=1 code=701 kernel=fat
import cudrv

cudrv.init()
data = cudrv.alloc(4096)
cudrv.launch(cudrv.kernel("fat"), (1,), (1024,), cudrv.u64(data), cudrv.i32(4))  # <- here
