# SPDX-License-Identifier: Apache-2.0
# An image that the driver can make nothing of: cut short, or for what it does not know.
# expect: cause=extension-arch-missing certainty=possible exit=1 code=200
import cudrv

cudrv.init()
cudrv.module(cudrv.image("nop")[:10])  # <- here
