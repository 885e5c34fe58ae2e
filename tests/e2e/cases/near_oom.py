# SPDX-License-Identifier: Apache-2.0
# Much more memory than the card has passes through it, never at one time.
# expect-silent: exit=0
import cudrv

cudrv.init()
for _ in range(100):
    cudrv.free(cudrv.alloc(40 << 20))
print("ok")
