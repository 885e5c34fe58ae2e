# SPDX-License-Identifier: Apache-2.0
# cuDSS asks for kernels that it can do without, and works; so does a cuTENSOR that launches another one instead, and an extension
# that takes stock of its kernels.
# expect-silent: exit=0
# uses: helpers/lookups.py
import cudrv
from helpers.lookups import HAVE, LACK, images, library

cudrv.init()
assert library("libcudss.so.0").take_stock(*images(HAVE, LACK, HAVE, LACK)) == 209
assert library("libcutensor.so.2").launch_all(*images(LACK, HAVE)) == 209
assert library("fast_ops/_C.abi3.so").take_stock(*images(HAVE, HAVE, LACK, HAVE, LACK)) == 209
cudrv.synchronize()
