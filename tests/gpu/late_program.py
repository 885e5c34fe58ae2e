# SPDX-License-Identifier: Apache-2.0
"""One thread of one kernel stores where no memory is; prints which call raises the error. Run by late.py.

    late_program.py driver KERNEL BLOCKS THREADS MILLISECONDS WAIT [PAUSE]      PTX through the driver API
    late_program.py cupy|triton WAIT
    late_program.py measure device|pinned                               how long a memset behind it takes, dumps armed

Standard output is compared with and without cuwhy; the time of the call is on standard error.
"""
import ctypes
import os
import sys
import time

HEAD = """.version 7.0
.target sm_70
.address_size 64
"""
# The guilty thread is number 0 of block 0. Every thread stays for `spin` clock cycles, before or after the access.
ENTRY = """
.visible .entry stray_%s(.param .u64 p, .param .u64 spin) {
 .reg .u64 %%a, %%from, %%now, %%spin; .reg .u32 %%t, %%b; .reg .pred %%other, %%more;
 ld.param.u64 %%a, [p]; ld.param.u64 %%spin, [spin];
 mov.u32 %%t, %%tid.x; mov.u32 %%b, %%ctaid.x; or.b32 %%t, %%t, %%b; setp.ne.u32 %%other, %%t, 0;
 %s
 mov.u64 %%from, %%clock64;
stay: mov.u64 %%now, %%clock64; sub.u64 %%now, %%now, %%from; setp.lt.u64 %%more, %%now, %%spin; @%%more bra stay;
 %s
 ret;
}
"""
ACCESS = {"store": "@!%other st.global.u32 [%a], %t;",
          "byte": "@!%other st.global.u8 [%a], %t;",
          "vector": "@!%other st.global.v4.u32 [%a], {%t, %t, %t, %t};",
          "atomic": "@!%other red.global.add.u32 [%a], %t;",
          "load": "@!%other ld.global.u32 %b, [%a]; @!%other st.global.u32 [%a], %b;"}
KERNELS = dict([(name, ENTRY % (name, text, "")) for name, text in ACCESS.items()] +
               [("end", ENTRY % ("end", "", ACCESS["store"])), ("null", ENTRY % ("null", ACCESS["store"], ""))])
CYCLES = 1500000        # of a millisecond, about
FAR = 1 << 42           # beyond any allocation

cuda = None


class Failed(Exception):
    """A driver call returned an error."""


def call(name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        raise Failed("%s returned %d" % (name, code))


class Driver:
    """A context, a kernel, a stream, an event and some memory."""

    def __init__(self, kernel, milliseconds):
        global cuda
        cuda, context, module = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
        self.function, self.stream, self.event = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.memory, self.host, self.pinned = ctypes.c_uint64(), (ctypes.c_char * 64)(), ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)
        sim = "CUWHY_SIM" in os.environ         # where only late.py itself is tested
        image = ("cuwhy-sim-module 1\ntarget compute_50 ptx 7.0\nkernel oob_store\n" if sim
                 else HEAD + KERNELS[kernel]).encode()
        call("cuModuleLoadData", ctypes.byref(module), image)
        call("cuModuleGetFunction", ctypes.byref(self.function), module, b"oob_store" if sim else b"stray_" + kernel.encode())
        call("cuStreamCreate", ctypes.byref(self.stream), 1)
        call("cuEventCreate", ctypes.byref(self.event), 2)
        call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(1 << 20))
        call("cuMemAllocHost_v2", ctypes.byref(self.pinned), ctypes.c_size_t(64))
        address = 16 if kernel == "null" else self.memory.value + FAR
        spin = FAR if sim else milliseconds * CYCLES
        self.bad, self.good, self.spin = ctypes.c_uint64(address), self.memory, ctypes.c_int64(spin)

    def launch(self, address, blocks, threads):
        args = [ctypes.cast(ctypes.byref(x), ctypes.c_void_p) for x in (address, self.spin)]
        call("cuLaunchKernel", self.function, blocks, 1, 1, threads, 1, 1, 0, self.stream,
             (ctypes.c_void_p * 2)(*args), None)

    def waits(self):
        return {"context": lambda: call("cuCtxSynchronize"),
                "stream": lambda: call("cuStreamSynchronize", self.stream),
                "event": lambda: call("cuEventRecord", self.event, self.stream) or call("cuEventSynchronize", self.event),
                "copy": lambda: (call("cuStreamSynchronize", self.stream),
                                 call("cuMemcpyDtoH_v2", self.host, self.memory, ctypes.c_size_t(64)))}


def say(step):
    print(step, flush=True)


def until_it_raises(wait, others):
    """Which call raises: the one that waits, or which of those that follow?"""
    for name, step in [("the call that waits", wait)] + others:
        began = time.perf_counter()
        try:
            step()
        except Exception as error:      # noqa: B902: whatever the library raises
            print("%.0f ms" % (1e3 * (time.perf_counter() - began)), file=sys.stderr)
            say("raised by " + name)
            print(str(error).splitlines()[0], file=sys.stderr)
            return 1
        say(name + " returned")
    return 0


def driver(kernel, blocks, threads, milliseconds, wait, pause="0"):
    d = Driver(kernel, int(milliseconds))
    d.launch(d.bad, int(blocks), int(threads))
    say("launched")
    time.sleep(int(pause) / 1e3)
    late = [("a pause of 1 s", lambda: time.sleep(1)), ("a second wait", lambda: call("cuCtxSynchronize"))]
    return until_it_raises(d.waits()[wait], late)


def use_cupy(wait):
    import cupy
    kernel = cupy.RawKernel(r"""
        extern "C" __global__ void stray(float *out, long long far) {
            if (blockIdx.x == 0 && threadIdx.x == 0) out[far] = 1.0f; }""", "stray")
    data, stream, event = cupy.zeros(1024, cupy.float32), cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
    cupy.cuda.Device().synchronize()
    with stream:
        kernel((64,), (128,), (data, cupy.int64(1 << 40)))
        event.record()
    say("launched")
    waits = {"device": cupy.cuda.Device().synchronize, "stream": stream.synchronize, "event": event.synchronize,
             "get": lambda: data.get(stream=stream)}
    return until_it_raises(waits[wait], [("a pause of 1 s", lambda: time.sleep(1)), ("a second wait", data.get)])


def use_triton(wait):
    import torch
    import triton_kernel
    data, event = torch.zeros(1024, device="cuda"), torch.cuda.Event()
    torch.cuda.synchronize()
    triton_kernel.stray[(64,)](data, 1 << 40)
    event.record()
    say("launched")
    waits = {"synchronize": torch.cuda.synchronize, "item": lambda: data[0].item(), "cpu": data.cpu,
             "event": event.synchronize}
    return until_it_raises(waits[wait], [("a pause of 1 s", lambda: time.sleep(1)),
                                         ("a second wait", torch.cuda.synchronize)])


def measure(kind):
    """What src/recorder/rec_look.c relies on."""
    d, private = Driver("store", 0), ctypes.c_void_p()
    call("cuStreamCreateWithPriority", ctypes.byref(private), 1, -5)
    target = ctypes.c_uint64(d.pinned.value if kind == "pinned" else d.memory.value + 4096)

    def memset():
        began = time.perf_counter()
        call("cuMemsetD32Async", target, 0, ctypes.c_size_t(1), private)
        while cuda.cuStreamQuery(private) == 600:
            pass
        return 1e6 * (time.perf_counter() - began)

    d.launch(d.good, 1, 32)
    call("cuCtxSynchronize")
    healthy = sorted(memset() for _ in range(1000))
    d.launch(d.bad, 1, 32)
    code = cuda.cuCtxSynchronize()
    slow = memset() if not code else 0
    began = time.perf_counter()
    while not cuda.cuStreamQuery(private) and time.perf_counter() - began < 2:
        pass
    say("%s memory: a memset takes %.1f us (99 of 100: %.1f, slowest %.1f); behind a stray store, for which the wait "
        "returned %d, %.0f us; the error %.1f ms after that" % (
            kind, healthy[500], healthy[990], healthy[-1], code, slow, 1e3 * (time.perf_counter() - began)))
    return 0


if __name__ == "__main__":
    HOW = {"driver": driver, "cupy": use_cupy, "triton": use_triton, "measure": measure}
    status = HOW[sys.argv[1]](*sys.argv[2:])
    sys.stdout.flush()
    os._exit(status)
