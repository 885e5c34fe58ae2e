# SPDX-License-Identifier: Apache-2.0
"""One rank of a job on the simulated GPU, without PyTorch: FAULTY faults in a kernel after the others have begun to wait for it; they lose
it, as ranks do, by the connection that it closes. worker.py FOLDER"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "site-packages"))
import ctypes  # noqa: E402

import cudrv  # noqa: E402

FAULTY = 2
NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


class DistNetworkError(RuntimeError):
    pass


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.05)


rank = next(int(os.environ[name]) for name in NAMES if name in os.environ)
world = int(os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("SLURM_NTASKS"))
cudrv.init()
data = cudrv.alloc(4096)
with open(os.path.join(sys.argv[1], "ready-%d" % rank), "w", encoding="utf-8"):
    pass
for other in range(world):
    wait_for(os.path.join(sys.argv[1], "ready-%d" % other))
if rank == FAULTY:
    cudrv.launch(cudrv.kernel("oob_store"), (2,), (64,), cudrv.u64(data), ctypes.c_int64(1 << 40))
    try:
        cudrv.synchronize()
    finally:
        with open(os.path.join(sys.argv[1], "gone"), "w", encoding="utf-8"):
            pass
wait_for(os.path.join(sys.argv[1], "gone"))
time.sleep(0.5)
raise DistNetworkError("Connection closed by peer")
