# SPDX-License-Identifier: Apache-2.0
# The code is in PyTorch's own library: the wheel lacks this GPU.
# expect: cause=arch-not-in-wheel certainty=certain exit=1 code=209
# uses: helpers/embedded.py
import ctypes

import cudrv
from helpers.embedded import image_in

cudrv.init()
cudrv.module(ctypes.c_void_p(image_in("site-packages/torch/lib/libtorch_cuda.so")))  # <- here
