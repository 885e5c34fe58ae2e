# SPDX-License-Identifier: Apache-2.0
# The largest launches of every kind that are still allowed.
# expect-silent: exit=0
import cudrv

cudrv.init()
nop, data = cudrv.kernel("nop"), cudrv.alloc(4096)
cudrv.launch(nop, (70000,), (1,))
cudrv.launch(nop, (1, 65535, 1), (1,))
cudrv.launch(nop, (1, 1, 65535), (1,))
cudrv.launch(nop, (1,), (1024,))
cudrv.launch(nop, (1,), (1, 1, 64))
cudrv.launch(nop, (1,), (32,), shared=49152)
cudrv.allow_shared(nop, 100000)
cudrv.launch(nop, (1,), (32,), shared=100000)
bounded = cudrv.kernel("nop bounds=128")
cudrv.launch(bounded, (1,), (128,))
fat = cudrv.kernel("fat")
cudrv.launch(fat, (1,), (384,), cudrv.u64(data), cudrv.i32(8))
cudrv.synchronize()
print("ok")
