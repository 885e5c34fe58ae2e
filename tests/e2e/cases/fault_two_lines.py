# SPDX-License-Identifier: Apache-2.0
# Two lines launch the kernel with the same offset, without synchronizing in between: the dump shows one of them.
# expect: cause=illegal-access-out-of-bounds certainty=likely exit=1 code=700 kernel=oob_store
import ctypes

import cudrv

cudrv.init()
store, data = cudrv.kernel("oob_store"), cudrv.alloc(4096)
cudrv.launch(store, (1,), (32,), cudrv.u64(data), ctypes.c_int64(1 << 40))  # <- here
cudrv.launch(store, (1,), (32,), cudrv.u64(data), ctypes.c_int64(1 << 40))  # <- here, <- either
cudrv.synchronize()
