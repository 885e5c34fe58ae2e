# SPDX-License-Identifier: Apache-2.0
# The variable is set before CUDA starts.
# expect-silent: exit=0
# env: CUDA_VISIBLE_DEVICES=9
import os

import cudrv

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
cudrv.init()
print(cudrv.count())
