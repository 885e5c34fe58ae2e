# SPDX-License-Identifier: Apache-2.0
# An image that the driver cannot use: truncated, or in a format that it does not know.
# expect: cause=extension-arch-missing certainty=possible exit=1 code=200
import cudrv

cudrv.init()
cudrv.module(cudrv.image("nop")[:10])  # <- here
