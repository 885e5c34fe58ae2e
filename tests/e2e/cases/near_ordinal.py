# SPDX-License-Identifier: Apache-2.0
# Both devices exist and are visible, in another order.
# expect-silent: exit=0
# gpu: sim:tiny,devices=2
# env: CUDA_VISIBLE_DEVICES=1,0
import cudrv

cudrv.init(1)
cudrv.init(0)
print(cudrv.count())
