# SPDX-License-Identifier: Apache-2.0
# 2,048 threads.
# expect: cause=launch-config-block-limit certainty=certain exit=1 kernel=nop
import cudrv


class Op:
    def __init__(self):
        self.kernel = cudrv.kernel("nop")

    def __call__(self, threads):
        cudrv.launch(self.kernel, (1,), (threads,))  # <- here


cudrv.init()
Op()(2048)
