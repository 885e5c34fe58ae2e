# SPDX-License-Identifier: Apache-2.0
# A vector access at an odd address.
# expect: cause=misaligned-address certainty=certain exit=1 code=716 kernel=misaligned
import cudrv

cudrv.init()
bad, data = cudrv.kernel("misaligned"), cudrv.alloc(64)
cudrv.launch(bad, (1,), (1,), cudrv.u64(data))  # <- here
cudrv.synchronize()
