# SPDX-License-Identifier: Apache-2.0
# An extension that checks none of its launches: one of its kernels did not run, and nobody says so.
# expect: cause=none exit=0
# expect-note: cause=extension-arch-missing
# uses: helpers/lookups.py
import cudrv
from helpers.lookups import HAVE, LACK, images, library

cudrv.init()
assert library("fast_ops/_C.abi3.so").launch_all(*images(HAVE, LACK, HAVE)) == 209  # <- note
cudrv.synchronize()
