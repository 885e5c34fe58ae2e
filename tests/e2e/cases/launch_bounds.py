# SPDX-License-Identifier: Apache-2.0
# A kernel compiled for 128 threads is launched with 256.
# expect: cause=launch-config-launch-bounds certainty=certain,likely exit=1
import cudrv

cudrv.init()
bounded = cudrv.kernel("nop bounds=128")
cudrv.launch(bounded, (1,), (256,))  # <- here
