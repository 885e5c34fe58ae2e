# SPDX-License-Identifier: Apache-2.0
# No device is visible, and the program continues without one.
# expect-note: cause=visible-devices-wrong exit=0
# env: CUDA_VISIBLE_DEVICES=9
import cudrv

try:
    cudrv.init()  # <- note
except cudrv.CudaError as error:
    print("on the CPU then:", error)
