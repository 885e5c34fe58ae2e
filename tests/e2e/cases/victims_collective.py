# SPDX-License-Identifier: Apache-2.0
# A worker faults and lives on for a while; its peer notices, with the exception that PyTorch raises when NCCL
# loses a peer, and ends first. The fault is the verdict, the peer its victim.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=3 code=700 victim=no
# expect-other: cause=none victim=yes
import ctypes
import subprocess
import sys


class DistBackendError(RuntimeError):
    """As torch.distributed has it."""


def faulty(cudrv):
    store = cudrv.kernel("oob_store")
    try:
        cudrv.launch(store, (1,), (32,), cudrv.u64(cudrv.alloc(4096)), ctypes.c_int64(1 << 40))  # <- here
        cudrv.synchronize()
    finally:
        print("failed", flush=True)
        sys.stdin.readline()


def work(what):
    import cudrv

    cudrv.init()
    if what == "faulty":
        faulty(cudrv)
    raise DistBackendError("NCCL error: remote process exited or there was a network error, ncclRemoteError")


if len(sys.argv) > 1:
    work(sys.argv[1])
else:
    first = subprocess.Popen([sys.executable, __file__, "faulty"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    first.stdout.readline()
    subprocess.run([sys.executable, __file__, "peer"])
    first.communicate(b"now\n")
    sys.exit(3)
