# SPDX-License-Identifier: Apache-2.0
# CUDA_VISIBLE_DEVICES leaves no device.
# expect: cause=visible-devices-wrong certainty=certain,likely exit=1
# env: CUDA_VISIBLE_DEVICES=GPU-deadbeef
import cudrv

cudrv.init()  # <- here
