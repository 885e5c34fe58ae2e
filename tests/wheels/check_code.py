#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads every fat binary of real libraries on simulated GPUs and looks at every kernel: check_code.py --build build LIBRARY...

Prints for each library and GPU: fat binaries, those without code for the GPU (209), kernels, and how long loading and looking took.
Fails when code cannot be read, or a kernel has no registers or has limits that no compiler gives it."""
import argparse
import ctypes
import mmap
import os
import resource
import struct
import subprocess
import sys
import time

MAGIC = 0xba55ed50
WRAPPER = 0x466243b1
PRESERVED = 1       # CU_LIBRARY_BINARY_IS_PRESERVED


def fat_binaries(data):
    """Offsets of the fat binaries in a library's .nv_fatbin."""
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
    text = sections[names][4]
    for s in sections:
        if data[text + s[0]:text + s[0] + 11] != b".nv_fatbin\0":
            continue
        place, end = s[4], s[4] + s[5]
        while place + 16 <= end:
            magic, _, header, length = struct.unpack_from("<IHHQ", data, place)
            if magic == MAGIC:
                yield place
                place += header + length
            else:
                place += 8


class Wrapper(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("data", ctypes.c_void_p), ("more", ctypes.c_void_p)]


def must(code, what):
    if code:
        raise SystemExit(f"{what}: error {code}")


def attribute(cu, kernel, number):
    value = ctypes.c_int(-1)
    must(cu.cuKernelGetAttribute(ctypes.byref(value), number, kernel, 0), "cuKernelGetAttribute")
    return value.value


def look(cu, kernel, seen):
    """What is wrong with a kernel; None: nothing."""
    name = ctypes.c_char_p()
    must(cu.cuKernelGetName(ctypes.byref(name), kernel), "cuKernelGetName")
    threads, shared, regs = (attribute(cu, kernel, n) for n in (0, 1, 4))
    offset, size, params = ctypes.c_size_t(), ctypes.c_size_t(), 0
    end = 0
    while cu.cuKernelGetParamInfo(kernel, ctypes.c_size_t(params), ctypes.byref(offset), ctypes.byref(size)) == 0:
        if offset.value < end or size.value == 0:
            return f"{name.value[:80]}: parameter {params} at {offset.value} has {size.value} bytes and begins before {end}"
        end = offset.value + size.value
        params += 1
    seen["longest name"] = max(seen.get("longest name", 0), len(name.value))
    seen["parameter bytes"] = max(seen.get("parameter bytes", 0), end)
    seen["shared"] = max(seen.get("shared", 0), shared)
    seen["registers"] = max(seen.get("registers", 0), regs)
    if not 1 <= regs <= 255 or not 1 <= threads <= 1024 or not 0 <= shared <= 49152:
        return f"{name.value[:80]}: {regs} registers, {threads} threads, {shared} bytes of shared memory"
    return None


def check(library, build):
    cu = ctypes.CDLL(os.path.join(build, "sim", "libcuda.so.1"))
    context = ctypes.c_void_p()
    must(cu.cuInit(0), "cuInit")
    must(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    with open(library, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(data))
    places = list(fat_binaries(data))
    wrappers = [Wrapper(WRAPPER, 1, base + place, None) for place in places]
    handles = []
    start = time.monotonic()
    for w in wrappers:
        handle = ctypes.c_void_p()
        must(cu.cuLibraryLoadData(ctypes.byref(handle), ctypes.byref(w), None, None, 0, None, None, 0), "cuLibraryLoadData")
        handles.append(handle)
    loaded = time.monotonic()
    codes, kernels, wrong, seen = {}, 0, [], {}
    for handle in handles:
        count = ctypes.c_uint()
        list_of = None
        code = cu.cuLibraryGetKernelCount(ctypes.byref(count), handle)
        module = ctypes.c_void_p()
        code = code or cu.cuLibraryGetModule(ctypes.byref(module), handle)
        if not code and count.value:
            list_of = (ctypes.c_void_p * count.value)()
            code = cu.cuLibraryEnumerateKernels(list_of, count, handle)
        codes[code] = codes.get(code, 0) + 1
        for kernel in list_of or ():
            kernels += 1
            problem = look(cu, ctypes.c_void_p(kernel), seen)
            if problem:
                wrong.append(problem)
    looked = time.monotonic()
    print(f"  {os.environ['CUWHY_SIM']:8} {len(places)} fat binaries, by result {codes}, {kernels} kernels; "
          f"loading {1000 * (loaded - start):.1f} ms, looking {looked - loaded:.1f} s, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB; most: {seen}", flush=True)
    for problem in wrong[:10]:
        print(f"    {problem}")
    return 1 if wrong or set(codes) - {0, 209} else 0


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build", default="build")
    arguments.add_argument("--gpu", action="append")
    arguments.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments.add_argument("library", nargs="+")
    a = arguments.parse_args()
    if a.one:
        return check(a.library[0], a.build)
    failed = 0
    for library in a.library:
        print(library, flush=True)
        # a driver is initialized once per process
        for gpu in a.gpu or ["a100", "h200", "rtx4090"]:
            failed |= subprocess.call([sys.executable, __file__, "--one", "--build", a.build, library],
                                      env=dict(os.environ, CUWHY_SIM=gpu))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
