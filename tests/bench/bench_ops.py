#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the recorder does in one operation of PyTorch: instructions, lines of code and calls, by function.

    PYTHONPATH=... tests/bench/bench_ops.py [--build build] [--functions] [OPERATION ...]

Runs the stock wheel on the simulated GPU, asleep (the library alone), paused, and recording, and steps through a few
operations after a thousand others. The numbers do not depend on the machine's load. While it is stepped through, an
operation takes longer than the time between two samples of the memory: what only the samples do is left out.
"""
import argparse
import array
import bisect
import collections
import ctypes
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bench_parts  # noqa: E402
import meter  # noqa: E402
import stats  # noqa: E402

WARM, REPEATS = 3000, 4
OPERATIONS = ("add", "new", "item", "module")
SAMPLES = {"line_note", "epochs_moment", "set_moment", "rec_clock_mark", "rec_mono_ns", "note_moments", "epochs_keep"}
SIMULATED = {"unknown_read", "read_entry"}      # asked for by the simulated GPU only


def loops(torch):
    x = torch.zeros(1024, device="cuda")

    def add(count, mark):
        for _ in range(count):
            mark()
            x.add_(1)

    def new(count, mark):
        y = x
        for _ in range(count):
            mark()
            y = y + 1

    def item(count, mark):
        for _ in range(count):
            mark()
            x.sum().item()

    class Plus(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.what = 1

        def forward(self, value):
            return value + self.what

    class Two(torch.nn.Module):
        """Each of its layers in turn: another module than the last one."""

        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Plus(), Plus()])

        def forward(self, value, number):
            return self.layers[number % 2](value)

    two = Two()

    def module(count, mark):
        y = x
        for number in range(count):
            mark()
            y = two(y, number)
    return {"add": add, "new": new, "item": item, "module": module}


def step_through(helper, operation, state, folder):
    """In the program: writes the addresses of all instructions, the maps and the address of the mark."""
    import torch
    library = ctypes.PyDLL(helper)
    loop = loops(torch)[operation]
    if state == "paused" and (loop(1, lambda: None), ctypes.CDLL(None).cuwhy_rec_pause(1))[1]:
        sys.exit("bench-ops: recording is not paused")
    settled = time.monotonic() + (12 if operation == "module" else 0)    # names are read again, ever less often
    loop(WARM, lambda: None)
    while time.monotonic() < settled:
        loop(WARM, lambda: None)
    with open("/proc/self/maps", encoding="utf-8") as maps, open(os.path.join(folder, "maps"), "w", encoding="utf-8") as out:
        out.write("%d\n%s" % (ctypes.cast(library.ops_mark, ctypes.c_void_p).value, maps.read()))
    if not library.ops_begin(os.path.join(folder, "trace").encode()):
        sys.exit("bench-ops: skipped, this process may not be traced")
    loop(REPEATS, library.ops_mark)
    library.ops_mark()
    library.ops_end()


class Operation:
    """The instructions of the recorder between two marks; what follows the last but one also ends the loop."""

    def __init__(self, folder, symbols):
        with open(os.path.join(folder, "maps"), encoding="utf-8") as stream:
            mark = int(stream.readline())
            ours = [line.split() for line in stream if "libcuwhy-rec" in line]
        spans = [[int(end, 16) for end in words[0].split("-")] for words in ours]
        begin, end = min(s[0] for s in spans), max(s[1] for s in spans)
        where = array.array("Q")
        with open(os.path.join(folder, "trace"), "rb") as stream:
            where.frombytes(stream.read())
        marks = [i for i, address in enumerate(where) if address == mark]
        self.functions, self.calls, self.lines = collections.Counter(), collections.Counter(), set()
        for address in where[marks[-3]:marks[-2]]:
            name = symbols.at(address - begin) if begin <= address < end else None
            if not name or name in SAMPLES | SIMULATED:
                continue
            self.functions[name] += 1
            self.calls[name] += symbols.rows[bisect.bisect(symbols.starts, address - begin) - 1][0] == address - begin
            self.lines.add(address // bench_parts.LINE)


def run(build, state, operation, helper, folder):
    """The operation, or why there is none."""
    sim = os.path.join(build, "sim")
    command, variables = [os.path.join(build, "cuwhy"), "run", "--gpu", "sim:h200", "--writes", "real", "--"], {}
    if state == "asleep":
        command = []
        variables = {"CUWHY_SIM": "h200", "CUWHY_SIM_LIBS": sim, "LD_LIBRARY_PATH": sim,
                     "LD_AUDIT": os.path.join(sim, "libcuwhy-sim-loader.so"), "LD_PRELOAD": os.path.join(build, "libcuwhy-rec.so")}
    command += [sys.executable, os.path.abspath(__file__), "--inside", helper, operation, state, folder]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **variables))
    if done.returncode:
        sys.exit("bench-ops: %s %s failed: %s" % (state, operation, done.stderr[-400:]))
    return Operation(folder, bench_parts.Symbols(os.path.join(build, "libcuwhy-rec.so")))


def main():
    if sys.argv[1:2] == ["--inside"]:
        step_through(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description="what the recorder does in one operation of PyTorch")
    parser.add_argument("--build", default="build")
    parser.add_argument("--functions", action="store_true", help="by function, too")
    parser.add_argument("operations", nargs="*", default=OPERATIONS)
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        print("bench-ops: skipped, no PyTorch")
        return 0
    rows, details = [], []
    with tempfile.TemporaryDirectory(prefix="cuwhy-ops-") as folder:
        helper = os.path.join(folder, "bench_ops.so")
        meter.compile_c(helper, ["bench_ops.c"], "-shared", "-fPIC")
        for operation in args.operations:
            for state in ("asleep", "paused", "recording"):
                found = run(os.path.abspath(args.build), state, operation, helper, folder)
                rows.append((operation, state, sum(found.functions.values()), len(found.lines)))
                details.append("%s, %s: %s" % (operation, state, ", ".join("%s %d in %d" % (name, n, found.calls[name])
                                                                           for name, n in found.functions.most_common())))
    stats.table(("operation", "recorder", "instructions", "lines of code"), rows)
    print("\n".join(details if args.functions else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
