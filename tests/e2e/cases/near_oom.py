# SPDX-License-Identifier: Apache-2.0
# Allocates much more memory than the card has, but never at the same time.
# expect-silent: exit=0
import cudrv

cudrv.init()
for _ in range(100):
    cudrv.free(cudrv.alloc(40 << 20))
print("ok")
