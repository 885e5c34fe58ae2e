# SPDX-License-Identifier: Apache-2.0
# Rank 1 reduces fewer elements than the others, and has gone on when they find out: the verdict is about its line. No PyTorch needed.
# expect: cause=nccl-rank-divergence certainty=certain exit=1
# gpu: sim:tiny*3
import ctypes
import subprocess
import sys
import time

RANKS, FLOAT, SUM = 3, 7, 0

import cudrv  # noqa: E402

nccl = ctypes.CDLL("libnccl.so.2")
Id = ctypes.c_char * 128


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", Id)]


if len(sys.argv) == 1:
    name = UniqueId()
    assert nccl.ncclGetUniqueId(ctypes.byref(name)) == 0
    words = bytes(name).hex()
    ranks = [subprocess.Popen([sys.executable, __file__, words, str(rank)]) for rank in range(RANKS)]
    sys.exit(1 if any([rank.wait() for rank in ranks]) else 0)

rank = int(sys.argv[2])
cudrv.init(rank)
comm, data = ctypes.c_void_p(), cudrv.alloc(4096)
nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
assert nccl.ncclCommInitRank(ctypes.byref(comm), RANKS, UniqueId.from_buffer_copy(bytes.fromhex(sys.argv[1])), rank) == 0
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
nccl.ncclAllReduce(data, data, 8, FLOAT, SUM, comm, None)
time.sleep(0 if rank == 1 else 0.5)
if rank == 1:
    nccl.ncclAllReduce(data, data, 7, FLOAT, SUM, comm, None)  # <- here
else:
    nccl.ncclAllReduce(data, data, 8, FLOAT, SUM, comm, None)
failed = ctypes.c_int(0)
while not failed.value:
    nccl.ncclCommGetAsyncError(comm, ctypes.byref(failed))
    time.sleep(0.01)
sys.exit(1)
