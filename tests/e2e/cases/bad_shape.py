# SPDX-License-Identifier: Apache-2.0
# The number of blocks is computed from a wrong layout and comes out negative.
# expect: cause=launch-config-bad-shape exit=1
import cudrv

cudrv.init()
channels, halo = 3, 8
cudrv.launch(cudrv.kernel("nop"), (channels - halo,), (32,))  # <- here
