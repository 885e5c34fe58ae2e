# SPDX-License-Identifier: Apache-2.0
# Two workers fault, one after the other: each has a core dump of its own, so none is a victim. A third one ends
# badly for its own reasons: it is neither a CUDA failure nor a victim.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=3 victim=no
# expect-other: cause=kernel-trap victim=no
import ctypes
import subprocess
import sys


def work(what):
    import cudrv

    cudrv.init()
    if what == "quits":
        sys.exit(5)
    if what == "first":
        store = cudrv.kernel("oob_store")
        cudrv.launch(store, (1,), (32,), cudrv.u64(cudrv.alloc(4096)), ctypes.c_int64(1 << 40))  # <- here
    else:
        cudrv.launch(cudrv.kernel("trap"), (1,), (1,))  # <- other
    cudrv.synchronize()


if len(sys.argv) > 1:
    work(sys.argv[1])
else:
    for what in ("first", "second", "quits"):
        subprocess.run([sys.executable, __file__, what])
    sys.exit(3)
