# SPDX-License-Identifier: Apache-2.0
# Small blocks and a large one fit, but not with a page of 2 MiB for each of the small ones.
# expect: cause=oom-guard-mode certainty=likely exit=1 code=2
# options: --guard
import cudrv

cudrv.init()
small = [cudrv.alloc(100) for _ in range(3)]
free, _ = cudrv.mem_info()
cudrv.alloc(free + (4 << 20))  # <- here
