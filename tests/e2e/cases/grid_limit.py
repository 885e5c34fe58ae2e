# SPDX-License-Identifier: Apache-2.0
# 70,000 blocks along z, launched some frames down in another module.
# expect: cause=launch-config-grid-limit exit=1 code=1 api=cuLaunchKernel kernel=nop
# uses: helpers/deep.py
import cudrv
from helpers.deep import outer

cudrv.init()
outer(cudrv.kernel("nop"), 70000)
