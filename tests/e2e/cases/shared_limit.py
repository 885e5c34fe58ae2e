# SPDX-License-Identifier: Apache-2.0
# 100,000 bytes without raising the kernel's own limit first.
# expect: cause=launch-config-shared-memory-limit certainty=certain exit=1
import cudrv

cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (32,), shared=100000)  # <- here
