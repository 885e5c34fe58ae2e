# SPDX-License-Identifier: Apache-2.0
# cuInit returns "unknown error", as on a laptop that was suspended.
# expect: cause=uvm-broken-after-suspend certainty=possible exit=1 code=999
# gpu: sim:tiny,fail=cuInit:1:999
import cudrv

cudrv.init()  # <- here
