# SPDX-License-Identifier: Apache-2.0
# Many small blocks fill the card.
# expect: cause=oom-capacity exit=1 code=2
import cudrv

cudrv.init()
pile = []
while True:
    pile.append(cudrv.alloc(8 << 20))  # <- here
