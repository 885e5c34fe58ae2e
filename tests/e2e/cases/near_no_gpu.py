# SPDX-License-Identifier: Apache-2.0
# A program that asks whether there is a GPU, finds none and does without: nothing failed.
# gpu: sim:tiny,devices=0
# expect-silent: exit=0
import cudrv

try:
    cudrv.init(0)
except cudrv.CudaError as error:
    print("no GPU:", error)
