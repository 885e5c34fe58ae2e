# SPDX-License-Identifier: Apache-2.0
# A library of NVIDIA's has no code for the GPU and passes that on, in words of its own.
# expect: cause=extension-arch-missing exit=1 code=209
# uses: helpers/lookups.py
import cudrv
from helpers.lookups import LACK, images, library


def check(status):
    if status:
        raise RuntimeError("the library is not usable here")


cudrv.init()
check(library("libcudnn_ops.so.9").take_stock(*images(LACK)))  # <- here
