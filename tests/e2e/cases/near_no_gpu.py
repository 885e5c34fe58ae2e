# SPDX-License-Identifier: Apache-2.0
# A program that checks for a GPU, finds none and continues without one: nothing failed.
# gpu: sim:tiny,devices=0
# expect-silent: exit=0
import cudrv

try:
    cudrv.init(0)
except cudrv.CudaError as error:
    print("no GPU:", error)
