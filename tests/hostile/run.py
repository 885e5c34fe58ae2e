#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the objects of programs that change them meanwhile, and of memory that lies, under the address and undefined-behavior sanitizers.

    tests/hostile/run.py [--runs 200] [--seed 1] [--milliseconds 300] [--build build]

The reader must not crash, not take longer than it may, not need more than a gigabyte, and never name a path that the program does not have.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
from rules_recorder import find_pythons  # noqa: E402

SOURCES = ["src/find/memory/holders*.c", "src/read/live/py*.c", "src/read/live/remote.c", "src/read/live/target.c", "src/read/live/task.c",
           "src/read/live/st*.c", "src/base/*.c", "src/case/line.c", "src/formats/elf*.c"]
FLAGS = ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-Iinclude", "-Isrc", "-I.", "-include", "src/base/banned.h", "-ffunction-sections",
         "-Wl,--gc-sections", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# What ever has tensors in tests/hostile/target.py.
KEEPS = ("steady", "window", "table", "nodes", "passing", "state", "feed", "made", "ahead")
POSSIBLE = re.compile(r"^(%s)\b" % "|".join(KEEPS))


def build(folder):
    reader = os.path.join(folder, "tests", "hostile_reader")
    os.makedirs(os.path.dirname(reader), exist_ok=True)
    sources = [s for pattern in SOURCES for s in sorted(glob.glob(pattern)) if not s.endswith("holders_kept.c")]
    subprocess.run(["gcc", *FLAGS, "-o", reader, "tests/hostile/reader.c", *sources, "-ljansson", "-lm", "-ldl"], check=True)
    return reader


class Target:
    """A program that changes its structures until it is told to end."""

    def __init__(self, python):
        self.process = subprocess.Popen([python, os.path.join(HERE, "target.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.blocks = "".join(iter(self.process.stdout.readline, "ready\n"))

    def read(self, reader, runs, seed, milliseconds):
        return subprocess.run([reader, str(self.process.pid), str(runs), seed, str(milliseconds)], input=self.blocks,
                              capture_output=True, text=True, timeout=600)

    def end(self):
        """How it ended: a program that was only read goes on."""
        alive = self.process.poll() is None
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        return alive


def check(version, kind, done, wanted):
    """The number of runs; what is wrong with them is printed."""
    lines = done.stdout.splitlines()
    runs = sum(line.startswith("- ") for line in lines)
    wrong = sorted({line for line in lines if not line.startswith("- ") and not POSSIBLE.match(line)}) if kind == "changing" else []
    found = sum(line == "steady" for line in lines)
    stops = [int(n) for n in re.findall(r"stopped (\d+)", done.stdout)]
    print("%-5s %-8s %3d runs, `steady` %3d times, stopped %.1f ms at most, %s" % (
        version, kind, runs, found, max(stops or [0]) / 1000, "paths that are none: %s" % wrong if wrong else "no wrong path"))
    bad = done.returncode or runs != wanted or wrong or (kind == "changing" and not found)
    if bad:
        print(done.stderr[-3000:])
    return runs, bool(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--milliseconds", type=int, default=300)
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    os.chdir(ROOT)
    pythons = sorted(find_pythons().items())
    if not pythons:
        print("hostile: SKIPPED: no python3.9 to python3.14 here")
        return 0
    reader, began, bad, total = build(args.build), time.monotonic(), 0, 0
    each = -(-args.runs // len(pythons))
    for n, (version, python) in enumerate(pythons):
        for kind, seed in (("changing", "-"), ("lying", str(args.seed * 1000 + n))):
            target = Target(python)
            runs, failed = check(version, kind, target.read(reader, each, seed, args.milliseconds), each)
            failed |= not target.end()
            total, bad = total + runs, bad + failed
    print("hostile: %d runs, %d failed, in %.0f s" % (total, bad, time.monotonic() - began))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
