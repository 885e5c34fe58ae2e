# SPDX-License-Identifier: Apache-2.0
# The GPU's limits are not known, and 2,048 threads are too many for any GPU.
# expect: cause=launch-config-block-limit certainty=likely exit=1
# gpu: sim:tiny,fail=cuDeviceGetAttribute:1:999
import cudrv

cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (2048,))  # <- here
