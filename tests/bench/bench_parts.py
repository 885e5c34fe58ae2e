#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the recorder does in one event: instructions, and how much memory it touches, by function.

    tests/bench/bench_parts.py [--build build] [--functions]

Runs bench_parts.c on the simulated GPU under valgrind's lackey, which prints every instruction and every access. These
numbers do not depend on the machine's load. Between two events a program evicts our code and data from the caches, so
lines (64 bytes) and pages (4 KiB) count as much as instructions do. The stack is left out: the program uses it, too.
Each event happens 16 times, and the one with the fewest instructions counts. There are no Python frames; bench_calls.py has what they add.
"""
import argparse
import bisect
import collections
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import meter  # noqa: E402
import stats  # noqa: E402

LINE, PAGE = 64, 4096


class Symbols:
    """Functions of the recorder by address."""

    def __init__(self, library):
        shown = subprocess.run(["nm", "-S", "--defined-only", library], capture_output=True, text=True, check=True)
        rows = [line.split() for line in shown.stdout.splitlines()]
        self.rows = sorted((int(row[0], 16), int(row[1], 16), row[3]) for row in rows if len(row) == 4 and row[2] in "tT")
        self.starts = [row[0] for row in self.rows]

    def at(self, address):
        i = bisect.bisect(self.starts, address) - 1
        start, size, name = self.rows[i] if i >= 0 else (0, 0, "")
        return name.split(".")[0] if start <= address < start + size else "calls through the loader"


class Event:
    """What was seen between two marks."""

    def __init__(self, name):
        self.name, self.instructions = name, collections.Counter()
        self.code, self.data = set(), set()

    def total(self):
        return sum(self.instructions.values())

    def row(self):
        pages = {line * LINE // PAGE for line in self.code | self.data}
        return (self.name, self.total(), len(self.code), len(self.data), len(pages))


def run(cuwhy, program, folder):
    trace = os.path.join(folder, "trace")
    command = [cuwhy, "run", "--gpu", "sim:h200", "--", "valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=" + trace, program]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("bench-parts: the program failed: %s" % done.stderr[-400:])
    return trace, done.stdout.splitlines()


def read_trace(trace, said, symbols):
    maps = [line.split()[1] for line in said if line.startswith("map ")]
    base, end = int(maps[0].split("-")[0], 16), int(maps[-1].split("-")[1], 16)
    mark, = [int(line.split()[1], 16) for line in said if line.startswith("mark ")]
    repeats, = [int(line.split()[1]) for line in said if line.startswith("repeats ")]
    events = [Event(line[len("event "):]) for line in said if line.startswith("event ") for _ in range(repeats)]
    number, ours = -1, False
    with open(trace, encoding="utf-8") as stream:
        for line in stream:
            kind, _, rest = line.partition(" ")
            if line.startswith("=") or not rest:
                continue
            address = int(line[3:].partition(",")[0], 16)
            if kind == "I":
                number += address == mark
                ours = base <= address < end
                if ours and 0 <= number < len(events):
                    events[number].instructions[symbols.at(address - base)] += 1
                    events[number].code.add(address // LINE)
            elif ours and 0 <= number < len(events) and not stack_address(address):
                events[number].data.add(address // LINE)
    return [min(events[i:i + repeats], key=Event.total) for i in range(0, len(events), repeats)]


def stack_address(address):
    """Valgrind puts the main thread's stack just below this."""
    return 0x1ffe000000 <= address < 0x1fff001000


def main():
    parser = argparse.ArgumentParser(description="what the recorder does in one event")
    parser.add_argument("--build", default="build")
    parser.add_argument("--functions", action="store_true", help="instructions by function, too")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        print("bench-parts: skipped, no valgrind")
        return 0
    build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory(prefix="cuwhy-parts-") as folder:
        program = os.path.join(folder, "bench_parts")
        helper = meter.build(folder, "libtorch_cuda_bench.so")
        meter.compile_c(program, ["bench_parts.c"], "-Wl,--no-as-needed", helper)
        trace, said = run(os.path.join(build, "cuwhy"), program, folder)
        events = read_trace(trace, said, Symbols(os.path.join(build, "libcuwhy-rec.so")))
    stats.table(("event", "instructions", "lines of code", "lines of data", "pages"), [event.row() for event in events])
    for event in events if args.functions else ():
        print("%s: %s" % (event.name, ", ".join("%s %d" % pair for pair in event.instructions.most_common())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
