# SPDX-License-Identifier: Apache-2.0
"""Measures single driver calls in blocks with recording on and paused, by bench_calls.c."""
import ctypes
import os
import shlex
import subprocess
import sys

import stats

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCK = 400         # fewer than a stream can queue, so that no launch waits for the GPU


class Bench(ctypes.Structure):
    """struct bench of bench_calls.c."""
    _fields_ = [("launch", ctypes.c_void_p), ("function", ctypes.c_void_p),
                ("alloc", ctypes.c_void_p), ("free", ctypes.c_void_p),
                ("set_current", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("ticks", ctypes.POINTER(ctypes.c_uint32)), ("count", ctypes.c_uint64),
                ("failed", ctypes.c_int64), ("report", ctypes.c_void_p),
                ("copy", ctypes.c_void_p), ("to", ctypes.c_uint64)]


def compile_c(target, names, *flags):
    sources = [os.path.join(HERE, name) for name in names]
    subprocess.run(shlex.split(os.environ.get("CC", "cc")) + ["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-o", target] + list(flags)
                   + sources + ["-lpthread", "-ldl"], check=True)


def build(folder, name="bench_calls.so"):
    """Compiles the C half into a folder and returns its path."""
    target = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    compile_c(target, ["bench_calls.c", "bench_steps.c"], "-shared", "-fPIC")
    return target


def load(path):
    library = ctypes.PyDLL(path)       # keeps the GIL, as most of PyTorch's own calls do
    library.bench_ticks_per_ns.restype = ctypes.c_double
    for name in ("bench_launches", "bench_launches_no_python", "bench_pairs", "bench_blocks", "bench_copies_small", "bench_copies_large"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    for name in ("bench_steps_launch", "bench_steps_pair", "bench_steps_block", "bench_steps_no_python"):
        getattr(library, name).restype = ctypes.c_int64
    return library


class Meter:
    """Collects samples of both kinds; `synchronize` waits for the GPU between blocks."""

    def __init__(self, library, cuda, function, context, synchronize, blocks):
        self.library, self.cuda, self.blocks = library, cuda, blocks
        self.function, self.context, self.synchronize = function, context, synchronize
        self.pause = ctypes.CDLL(None).cuwhy_rec_pause
        self.scale = library.bench_ticks_per_ns()
        self.room = ctypes.c_uint64()
        cuda.cuMemAlloc_v2(ctypes.byref(self.room), ctypes.c_size_t(64 << 10))

    def entry(self, name):
        return ctypes.cast(getattr(self.cuda, name), ctypes.c_void_p)

    def bench(self, blocks):
        bench = Bench(function=self.function, context=self.context)
        bench.launch, bench.alloc = self.entry("cuLaunchKernel"), self.entry("cuMemAlloc_v2")
        bench.free, bench.set_current = self.entry("cuMemFree_v2"), self.entry("cuCtxSetCurrent")
        bench.copy, bench.to = self.entry("cuMemcpyHtoD_v2"), self.room.value
        bench.samples = (ctypes.c_uint32 * (BLOCK * blocks))()
        bench.ticks = ctypes.cast(bench.samples, ctypes.POINTER(ctypes.c_uint32))
        return bench

    def steps(self, run):
        """Instructions that recording adds to one call, None where they cannot be counted."""
        counted = []
        for paused in (0, 1):
            self.pause(paused)
            counted.append(run(self.bench(8)))
        self.pause(0)
        return counted[0] - counted[1] if min(counted) >= 0 else None

    def measure(self, run):
        """Summaries with recording on and paused."""
        kept, warm = [self.bench(self.blocks), self.bench(self.blocks)], self.bench(8)
        for _ in range(8):
            run(warm)
            self.synchronize()
        for number in range(2 * self.blocks):
            paused = (number + number // 2) % 2     # off on, on off, off on: no order is favored
            self.pause(paused)
            run(kept[paused])
            self.pause(0)
            self.synchronize()
        return self.summary(kept[0]), self.summary(kept[1])

    def summary(self, bench):
        if bench.failed:
            sys.exit("bench: %d calls failed" % bench.failed)
        ns = sorted(bench.samples[i] / self.scale for i in range(bench.count))
        most = ns[:len(ns) * 99 // 100]
        return {"median": stats.quantile(ns, 0.5), "mean": sum(most) / len(most),
                "p99.9": stats.quantile(ns, 0.999), "max": ns[-1]}


HEAD = ("call", "cost, median ns", "cost, mean ns of the fastest 99 %", "instructions",
        "median ns", "p99.9 us", "max us")


def row(name, on, off, steps):
    return (name, "%.0f" % (on["median"] - off["median"]), "%.0f" % (on["mean"] - off["mean"]),
            "n/a" if steps is None else steps, "%.0f / %.0f" % (on["median"], off["median"]),
            "%.1f / %.1f" % (on["p99.9"] / 1e3, off["p99.9"] / 1e3),
            "%.1f / %.1f" % (on["max"] / 1e3, off["max"] / 1e3))
