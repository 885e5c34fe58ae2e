# SPDX-License-Identifier: Apache-2.0
# A program that fails without CUDA having anything to do with it.
# expect-silent: exit=6
import sys

import cudrv

cudrv.init()
cudrv.free(cudrv.alloc(64))
sys.exit(6)
