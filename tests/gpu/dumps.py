#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates real GPU core dumps with kernels of our own, one per kind of fault, scrubbed and small.

    tests/gpu/dumps.py OUTDIR [name…]

Each fault happens in a child with CuPy and the driver's dumps switched on. The child knows beforehand what must
be found (kernel, thread, address, access) and writes it down. Left in OUTDIR for each kind: NAME.cudacore.gz,
scrubbed by tests/dump/scrub.py, and NAME.json for tests/dump/check_real.py. Needs CuPy and a GPU; takes about two
minutes. Status 0 when every kind gave a dump.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FAR = 1 << 42           # bytes past a small allocation: unmapped memory
LIMIT_CHILD, LIMIT_ALL = 25, 170
FLAGS = "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory,skip_abort"

KINDS = {}


def kind(name, source, function=None, allow=(), **expect):
    """Registers a kind: the decorated function launches the kernel and returns what else must be found."""
    def add(launch):
        KINDS[name] = dict(source=source, function=function or name, allow=list(allow), expect=expect, launch=launch)
        return launch
    return add


def fault(cp, address=None, thread=None, block=None, **more):
    found = dict(more)
    if address is not None:
        found["address"] = hex(address)
    if thread is not None:
        found["block"], found["thread"] = list(block or (0, 0, 0)), list(thread)
    return {"fault": found}


# ---- kernels ------------------------------------------------------------------------------------------------

@kind("store_far", """
extern "C" __global__ void store_far(float *p, long long n)
{
    if (blockIdx.x == 2 && threadIdx.x == 37)
        p[n] = 1.0f;
}""", cause="illegal-access-out-of-bounds")
def store_far(cp, k):
    p = cp.zeros(1024, cp.float32)
    k((4,), (128,), (p, cp.int64(FAR // 4)))
    return fault(cp, p.data.ptr + FAR, (37, 0, 0), (2, 0, 0), access="write", bytes=4, space="global")


@kind("store_all", """
extern "C" __global__ void store_all(double *p, long long n)
{
    p[n + blockIdx.x * blockDim.x + threadIdx.x] = 1.0;
}""", cause="illegal-access-out-of-bounds")
def store_all(cp, k):
    p = cp.zeros(1024, cp.float64)
    k((4,), (128,), (p, cp.int64(FAR // 8)))
    found = fault(cp, access="write", bytes=8, space="global")
    found["linear"] = {"base": p.data.ptr + FAR, "step": 8, "block": 128}
    return found


@kind("load_far", """
__global__ void load_far(const short *from, int *to, long long n)
{
    if (threadIdx.x == 33 && threadIdx.y == 1)
        *to = from[n];
}""", function="_Z8load_farPKsPix", cause="illegal-access-out-of-bounds",
      kernel={"name": "load_far(short const*, int*, long long)"})
def load_far(cp, k):
    p = cp.zeros(1024, cp.int32)
    k((1,), (64, 2), (p, p, cp.int64(FAR // 2)))
    # the load overwrites its own address, which is recomputed from the code
    return fault(cp, p.data.ptr + FAR, (33, 1, 0), access="read", bytes=2, space="global")


@kind("atomic_far", """
extern "C" __global__ void atomic_far(int *p, long long n)
{
    if (threadIdx.x == 5)
        p[0] = atomicAdd(p + n, 3);
}""", cause="illegal-access-out-of-bounds")
def atomic_far(cp, k):
    p = cp.zeros(16, cp.int32)
    k((1,), (32,), (p, cp.int64(FAR // 4)))
    return fault(cp, p.data.ptr + FAR, (5, 0, 0), access="atomic", bytes=4, space="global")


# Loads whose result overwrites their own address, computed the way programs do.

@kind("load_row32", """
struct wide { float v[64]; };
extern "C" __global__ void load_row32(const wide *from, float *to, int stride, int rows)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row == rows && col == 37)
        *to = from[row * stride + col].v[3];
}""", cause="illegal-access-out-of-bounds")
def load_row32(cp, k):
    p, stride = cp.zeros(1024, cp.float32), -(1 << 27)
    k((2, 2), (32, 8), (p, p, cp.int32(stride), cp.int32(11)))
    return fault(cp, p.data.ptr + (11 * stride + 37) * 256 + 12, (5, 3, 0), (1, 1, 0), access="read", bytes=4, space="global")


@kind("load_row64", """
extern "C" __global__ void load_row64(const double *from, double *to, long long stride)
{
    long long row = blockIdx.x, col = threadIdx.x;
    if (row == 3 && col == 70)
        *to = from[row * stride + col];
}""", cause="illegal-access-out-of-bounds")
def load_row64(cp, k):
    p, stride = cp.zeros(1024, cp.float64), FAR // 24
    k((4,), (96,), (p, p, cp.int64(stride)))
    return fault(cp, p.data.ptr + (3 * stride + 70) * 8, (70, 0, 0), (3, 0, 0), access="read", bytes=8, space="global")


@kind("load_u16", """
extern "C" __global__ void load_u16(const unsigned short *from, int *to, unsigned by, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == n)
        to[i] = from[(size_t)i * by];
}""", cause="illegal-access-out-of-bounds")
def load_u16(cp, k):
    p, by = cp.zeros(1024, cp.int32), 4000000000
    k((4,), (128,), (p, p, cp.uint32(by), cp.int32(400)))
    return fault(cp, p.data.ptr + 400 * by * 2, (16, 0, 0), (3, 0, 0), access="read", bytes=2, space="global")


@kind("load_v4", """
extern "C" __global__ void load_v4(const int4 *from, int4 *to, long long by)
{
    if (threadIdx.x >= 30)
        to[threadIdx.x] = from[threadIdx.x + by];
}""", cause="illegal-access-out-of-bounds")
def load_v4(cp, k):
    p = cp.zeros(1024, cp.int32)
    k((1,), (32,), (p, p, cp.int64(FAR // 16)))
    return fault(cp, p.data.ptr + FAR + 480, (30, 0, 0), access="read", bytes=16, space="global", threads=2)


@kind("load_all", """
extern "C" __global__ void load_all(const long long *from, long long *to, long long by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i + by];
}""", cause="illegal-access-out-of-bounds")
def load_all(cp, k):
    p = cp.zeros(512, cp.int64)
    k((4,), (128,), (p, p, cp.int64(FAR // 8)))
    found = fault(cp, access="read", bytes=8, space="global")
    found["linear"] = {"base": p.data.ptr + FAR, "step": 8, "block": 128}
    return found


@kind("load_struct", """
struct item { int a; float b[60]; short c; };
extern "C" __global__ void load_struct(const item *from, int *to, int n)
{
    if (threadIdx.x == 21)
        *to = from[n - (int)threadIdx.x].c;
}""", cause="illegal-access-out-of-bounds")
def load_struct(cp, k):
    p = cp.zeros(1024, cp.int32)
    k((1,), (32,), (p, p, cp.int32(-2000000000)))
    return fault(cp, p.data.ptr + (-2000000000 - 21) * 248 + 244, (21, 0, 0), access="read", bytes=2, space="global")


# An index from memory or a loop counter may be lost with the address: then "none" is also a right answer.

@kind("load_indirect", """
extern "C" __global__ void load_indirect(const float *from, const long long *index, float *to)
{
    if (threadIdx.x == 9)
        to[threadIdx.x] = from[index[threadIdx.x]];
}""", cause="illegal-access-out-of-bounds")
def load_indirect(cp, k):
    p, index = cp.zeros(1024, cp.float32), cp.full(32, FAR // 4, cp.int64)
    cp.cuda.Device().synchronize()
    k((1,), (32,), (p, index, p))
    return dict(fault(cp, None, (9, 0, 0), access="read", bytes=4, space="global"), address=hex(p.data.ptr + FAR))


@kind("load_loop", """
extern "C" __global__ void load_loop(const float *from, float *to, long long step, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += from[threadIdx.x + i * step];
    to[threadIdx.x] = sum;
}""", cause="illegal-access-out-of-bounds")
def load_loop(cp, k):
    p = cp.zeros(1024, cp.float32)
    k((1,), (1,), (p, p, cp.int64(FAR // 4), cp.int32(3)))
    return dict(fault(cp, None, (0, 0, 0), access="read", bytes=4, space="global"), address=hex(p.data.ptr + FAR))


@kind("reduce_far", """
extern "C" __global__ void reduce_far(float *p, long long n)
{
    if (threadIdx.x == 6)
        atomicAdd(p + n, 3.0f);
}""", cause="illegal-access-out-of-bounds")
def reduce_far(cp, k):
    p = cp.zeros(16, cp.float32)
    k((1,), (32,), (p, cp.int64(FAR // 4)))
    return fault(cp, p.data.ptr + FAR, (6, 0, 0), access="atomic", bytes=4, space="global")


@kind("misaligned", """
extern "C" __global__ void misaligned(char *p)
{
    *(long long *)(p + threadIdx.x * 8 + (threadIdx.x == 9 ? 1 : 0)) = 7;
}""", cause="misaligned-address")
def misaligned(cp, k):
    p = cp.zeros(4096, cp.int8)
    k((1,), (32,), (p,))
    return fault(cp, p.data.ptr + 73, (9, 0, 0), access="write", bytes=8, space="global")


@kind("trap", """
extern "C" __global__ void trap(int *p)
{
    if (threadIdx.x == 64)
        asm volatile("trap;");
    p[threadIdx.x] = 1;
}""", cause="kernel-trap")
def trap(cp, k):
    k((1,), (96,), (cp.zeros(96, cp.int32),))
    return fault(cp)


@kind("overflow", """
extern "C" __device__ __noinline__ int deeper(int n, int *p)
{
    volatile int frame[64];
    for (int i = 0; i < 64; i++)
        frame[i] = n + i;
    if (n <= 0)
        return p[0];
    return deeper(n - 1, p) + frame[n & 63];
}
extern "C" __global__ void overflow(int *p, int n)
{
    p[0] = deeper(n, p);
}""", allow=["deeper", "$overflow$deeper"], cause="kernel-stack-overflow")
def overflow(cp, k):
    k((1,), (1,), (cp.zeros(4, cp.int32), cp.int32(100000)))
    return fault(cp, None, (0, 0, 0), space="local")


ASSERT = """
extern "C" __global__ void asserts(const int *p, int n)
{
    assert(p[threadIdx.x] < n);
}"""


@kind("asserts", [ASSERT, "#include <cassert>\n" + ASSERT, "#include <assert.h>\n" + ASSERT,
                  'extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, '
                  'unsigned long);\n#define assert(x) ((x) ? (void)0 : __assertfail(#x, "dumps.cu", 1, "asserts", 1))\n'
                  + ASSERT],
      error={"code": 710})
def asserts(cp, k):
    p = cp.zeros(64, cp.int32)
    p[35] = 100
    cp.cuda.Device().synchronize()
    k((1,), (64,), (p, cp.int32(10)))
    return fault(cp, None, (35, 0, 0))


@kind("shared_far", """
extern "C" __global__ void shared_far(int *p, int n)
{
    extern __shared__ int s[];
    s[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 3)
        s[n] = 2;
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x];
}""")
def shared_far(cp, k):
    k((1,), (32,), (cp.zeros(32, cp.int32), cp.int32(1 << 20)), shared_mem=128)
    return fault(cp, None, (3, 0, 0), access="write", bytes=4, space="shared")


@kind("generic_far", """
extern "C" __global__ void generic_far(int *p, long long n, int which)
{
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    int *q = which ? p : s;
    if (threadIdx.x == 11)
        q[n] = 2;
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x];
}""", cause="illegal-access-out-of-bounds")
def generic_far(cp, k):
    p = cp.zeros(32, cp.int32)
    k((1,), (32,), (p, cp.int64(FAR // 4), cp.int32(1)))
    return fault(cp, p.data.ptr + FAR, (11, 0, 0), access="write", bytes=4, space="global")


@kind("exited", """
extern "C" __global__ void exited(int *p, long long n)
{
    if (blockIdx.x == 0) {
        p[n + threadIdx.x] = 1;
        return;
    }
    long long start = clock64();
    while (clock64() - start < 200000000)
        ;
    p[threadIdx.x] = 1;
}""", cause="illegal-access-out-of-bounds")
def exited(cp, k):
    k((2,), (32,), (cp.zeros(64, cp.int32), cp.int64(FAR // 4)))
    return fault(cp, access="write", bytes=4, space="global")


@kind("graph_store", """
extern "C" __global__ void graph_store(float *p, long long n)
{
    if (threadIdx.x == 1)
        p[n] = 1.0f;
}""", cause="illegal-access-out-of-bounds")
def graph_store(cp, k):
    p = cp.zeros(32, cp.float32)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        k((1,), (32,), (p, cp.int64(FAR // 4)))
        graph = stream.end_capture()
    graph.launch(stream)
    return fault(cp, p.data.ptr + FAR, (1, 0, 0), access="write", bytes=4, space="global")


@kind("hang", """
extern "C" __global__ void hang(volatile int *p)
{
    while (p[0] == 0)
        ;
    p[1] = 1;
}""", cause="kernel-hang")
def hang(cp, k):
    k((2,), (64,), (cp.zeros(2, cp.int32),))
    return {}


# ---- the child ----------------------------------------------------------------------------------------------

def compile_first(cp, sources, function):
    """The first source that this compiler accepts: what `assert` needs differs between versions."""
    sources = sources if isinstance(sources, list) else [sources]
    for i, source in enumerate(sources):
        try:
            return cp.RawModule(code=source).get_function(function)
        except Exception:       # noqa: BLE001  compilers raise many kinds
            if i == len(sources) - 1:
                raise
    return None


def child(name, info):
    import cupy as cp
    what = KINDS[name]
    k = compile_first(cp, what["source"], what["function"])
    cp.cuda.Device().synchronize()
    found = what["launch"](cp, k)
    with open(info, "w", encoding="utf-8") as f:
        json.dump(found, f)
    try:
        cp.cuda.Device().synchronize()
    except Exception as e:      # noqa: BLE001  the fault itself
        print(f"{name}: {e}")
    # for a single stray store, the driver reports the fault some time after the kernel has ended
    wait_for(lambda: os.path.exists(os.environ["CUDA_COREDUMP_FILE"]), 2)
    time.sleep(0.5)
    os._exit(0)


# ---- the parent ---------------------------------------------------------------------------------------------

def environment(folder, name):
    env = dict(os.environ, CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_GENERATION_FLAGS=FLAGS,
               CUDA_COREDUMP_FILE=os.path.join(folder, name + ".cudacore"), CUPY_CACHE_DIR=os.path.join(folder, "cache"))
    if name == "hang":
        env.update(CUDA_ENABLE_USER_TRIGGERED_COREDUMP="1", CUDA_COREDUMP_PIPE=os.path.join(folder, name + ".pipe"))
    return env


def wait_for(test, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return True
        time.sleep(0.1)
    return False


def trigger(folder, name, process):
    """Asks the driver for a dump of a running kernel, and waits until the file stops growing."""
    info, pipe, dump = (os.path.join(folder, name + e) for e in (".info", ".pipe", ".cudacore"))
    if not wait_for(lambda: os.path.exists(info) or process.poll() is not None, LIMIT_CHILD):
        return
    time.sleep(1)
    fd, written = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), 0
    try:
        while written < 1 << 20 and not os.path.exists(dump):
            try:
                written += os.write(fd, b"\0" * 4096)
            except BlockingIOError:
                time.sleep(0.1)
            except BrokenPipeError:
                break
    finally:
        os.close(fd)
    sizes = [-1]

    def settled():
        sizes.append(os.path.getsize(dump) if os.path.exists(dump) else -1)
        return len(sizes) > 10 and sizes[-1] > 0 and len(set(sizes[-10:])) == 1
    wait_for(settled, 15)


def make_dump(folder, name):
    args = [sys.executable, os.path.abspath(__file__), "--child", name, os.path.join(folder, name + ".info")]
    process = subprocess.Popen(args, env=environment(folder, name), cwd=folder)
    try:
        if name == "hang":
            trigger(folder, name, process)
        else:
            process.wait(LIMIT_CHILD)
    except (subprocess.TimeoutExpired, OSError) as e:
        print(f"{name}: {e}")
    finally:
        process.kill()
        process.wait()
    return os.path.join(folder, name + ".cudacore")


def scrubber():
    spec = importlib.util.spec_from_file_location("scrub", os.path.join(HERE, "..", "dump", "scrub.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expectation(folder, name):
    what = KINDS[name]
    with open(os.path.join(folder, name + ".info"), encoding="utf-8") as f:
        found = json.load(f)
    linear, address = found.pop("linear", None), found.pop("address", None)
    expect = dict(what["expect"])
    expect.setdefault("kernel", {"name": name})
    expect.update(found)
    out = {"functions": [what["function"]] + what["allow"], "keep": [what["function"]], "expect": expect}
    if linear:
        out["linear"] = linear
    if address:
        out["address"] = address
    return out


def one(scrub, folder, out, name):
    dump = make_dump(folder, name)
    if not os.path.exists(dump):
        print(f"{name}: no dump")
        return False
    try:
        expected = expectation(folder, name)
        target = os.path.join(out, name + ".cudacore.gz")
        _, size = scrub.scrub(dump, target, expected["keep"], expected["functions"], small=True)
    except (scrub.Refused, scrub.NotADump, OSError) as e:
        print(f"{name}: {e}")
        return False
    with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
        json.dump(expected, f, indent=1)
        f.write("\n")
    print(f"{name}: {os.path.getsize(dump)} bytes, scrubbed {size}", flush=True)
    os.unlink(dump)
    return True


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--child":
        child(sys.argv[2], sys.argv[3])
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    out, names, start = sys.argv[1], sys.argv[2:] or list(KINDS), time.monotonic()
    os.makedirs(out, exist_ok=True)
    scrub, made = scrubber(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if time.monotonic() - start > LIMIT_ALL - 10:
                print(f"{name}: no time left")
                continue
            made += one(scrub, folder, out, name)
    print(f"{made} of {len(names)} dumps in {time.monotonic() - start:.0f} s")
    return 0 if made == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
