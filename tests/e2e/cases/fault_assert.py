# SPDX-License-Identifier: Apache-2.0
# The driver swallows an assert when dumps are on; the error must still be reported, repeatedly.
# expect: cause=kernel-assert certainty=certain exit=1 code=710 kernel=assert_fail
import cudrv

cudrv.init()
nop, bad = cudrv.kernel("nop"), cudrv.kernel("assert_fail")
cudrv.launch(bad, (1,), (1,))  # <- here
seen = []
for call in (cudrv.synchronize, lambda: cudrv.launch(nop, (1,), (1,)), lambda: cudrv.alloc(64), cudrv.synchronize):
    try:
        call()
    except cudrv.CudaError as error:
        seen.append(error.code)
assert seen == [710, 710, 710, 710], seen
cudrv.synchronize()
