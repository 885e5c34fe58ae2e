# SPDX-License-Identifier: Apache-2.0
# PTX of a newer toolkit than the driver.
# expect: cause=ptx-newer-than-driver certainty=certain,likely exit=1 code=222
# gpu: sim:tiny,driver=12040
import cudrv

cudrv.init()
cudrv.module(cudrv.image("nop", target="compute_80 ptx 9.0"))  # <- here
