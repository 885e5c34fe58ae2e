# SPDX-License-Identifier: Apache-2.0
# Machine code for another architecture only.
# expect: cause=extension-arch-missing certainty=certain,likely exit=1 code=209
import cudrv


def load(name, target):
    return cudrv.kernel(name, target=target)  # <- here


cudrv.init()
load("nop", "sm_90")
