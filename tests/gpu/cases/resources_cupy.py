# SPDX-License-Identifier: Apache-2.0
# 168 registers a thread and 1,024 threads need more registers than a block can have.
# expect: cause=too-many-resources certainty=certain,likely exit=1 kernel=heavy code=701
# needs: cupy
import cupy
from helpers import raw


def run(threads):
    data = cupy.zeros(1024, dtype=cupy.float32)
    heavy = raw.kernel(raw.HEAVY, "heavy")
    heavy((1,), (threads,), (data, cupy.int32(4)))  # <- here


run(256)
run(1024)
