# SPDX-License-Identifier: Apache-2.0
# The variable is corrected after CUDA has already read it.
# expect: cause=visible-devices-set-late certainty=certain,likely exit=1
# env: CUDA_VISIBLE_DEVICES=9
import os

import cudrv

print("at first:", cudrv.cuda.cuInit(0))
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
cudrv.init()  # <- here
