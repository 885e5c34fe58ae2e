# SPDX-License-Identifier: Apache-2.0
# torchrun with two ranks, one of which fails: its exit status and its output are as without cuwhy, the verdict names rank
# and line, and the launcher is its victim.
command -v torchrun >/dev/null || { echo "no torchrun"; exit 77; }
cat >prog.py <<'P'
import ctypes, os
print("this is rank", os.environ["RANK"], flush=True)
if os.environ["RANK"] == "1":
    os.environ["CUWHY_SIM"] = "h200"
    cuda = ctypes.CDLL(os.environ["BUILD"] + "/sim/libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
    if cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 50)):
        raise RuntimeError("CUDA error: out of memory")
P
torchrun --nproc-per-node 2 prog.py >out1 2>err1
echo "without cuwhy: $?"
cuwhy run --out o torchrun --nproc-per-node 2 prog.py >out2 2>err2
echo "with cuwhy: $?"
sort out1 >sorted1
sort out2 | diff sorted1 - && echo "the same on standard output"
grep -o "oom-request-too-large; recording o" err2
grep -o "prog.py:8 " err2 | head -1
grep -o "rank 1, process" err2
grep -o "it reported that a worker failed" err2
