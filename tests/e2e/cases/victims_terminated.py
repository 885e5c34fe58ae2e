# SPDX-License-Identifier: Apache-2.0
# One of three workers faults; their parent ends the others, as torchrun and mp.spawn do.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=3 code=700 victim=no
# expect-other: cause=none victim=yes
import ctypes
import subprocess
import sys


def work(faulty):
    import cudrv

    cudrv.init()
    data, store = cudrv.alloc(4096), cudrv.kernel("oob_store")
    print("ready", flush=True)
    sys.stdin.readline()
    if not faulty:
        sys.stdin.read()
    cudrv.launch(store, (1,), (32,), cudrv.u64(data), ctypes.c_int64(1 << 40))  # <- here
    cudrv.synchronize()


def parent():
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    workers = [subprocess.Popen([sys.executable, __file__, str(n)], **pipes) for n in range(3)]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    workers[0].wait()
    for worker in workers[1:]:
        worker.terminate()
        worker.wait()
    sys.exit(3)


if len(sys.argv) > 1:
    work(sys.argv[1] == "0")
else:
    parent()
