# SPDX-License-Identifier: Apache-2.0
# CUDA_VISIBLE_DEVICES leaves one of two devices, and renumbers it to 0.
# expect: cause=device-ordinal-out-of-range certainty=certain,likely exit=1
# gpu: sim:tiny,devices=2
# env: CUDA_VISIBLE_DEVICES=1
import cudrv

cudrv.init(1)  # <- here
