# SPDX-License-Identifier: Apache-2.0
# The code is in a compiled extension: PyTorch has nothing to do with it.
# expect: cause=extension-arch-missing certainty=certain exit=1 code=209
# uses: helpers/embedded.py
import ctypes

import cudrv
from helpers.embedded import image_in

cudrv.init()
cudrv.module(ctypes.c_void_p(image_in("site-packages/fast_ops/_C.cpython-312-x86_64-linux-gnu.so")))  # <- here
