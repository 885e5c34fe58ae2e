#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs PyTorch on a real GPU: `make bench-gpu`.

    tests/bench/bench_gpu.py [--build build] [--part outside|inside|turns|whole] [--seconds 60]

First what a user sees: whole processes with and without cuwhy in turn (bench_outside.py). The other parts tell where it
comes from. Inside one process recording is paused and resumed in alternating blocks. Armed core dumps cannot be switched
inside a process: they are measured with three processes that take turns. Whole processes are started in turn with and
without cuwhy. Without a GPU or PyTorch it is skipped, and says so.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import meter  # noqa: E402
import stats  # noqa: E402

COMPILE = """
import torch

@torch.compile
def f(x, y):
    return torch.nn.functional.gelu(x @ y).softmax(-1).sum()

x = torch.randn(256, 256, device="cuda", requires_grad=True)
f(x, x).backward()
torch.cuda.synchronize()
"""
IMPORT = "import torch"
COUNT = """
import sys
events = 0
def hook(*_):
    global events
    events += 1
sys.addaudithook(hook)
%s
print(events)
""" % COMPILE


def timed(command, env):
    begin = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def fresh_caches(folder):
    """An environment in which torch.compile starts with empty caches."""
    place = tempfile.mkdtemp(dir=folder)
    return dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(place, "inductor"),
                TRITON_CACHE_DIR=os.path.join(place, "triton"))


def whole_processes(name, cuwhy, program, seconds, folder):
    """Alternates until the time is up, at least four of each. The first two fill the disk cache."""
    times = {0: [], 1: []}
    command = [sys.executable, "-c", program]
    for _ in range(2):
        timed(command, fresh_caches(folder))
    end, number = time.monotonic() + seconds, 0
    while number < 8 or time.monotonic() < end:
        under = (number + number // 2) % 2
        env = fresh_caches(folder)
        times[under].append(timed(([cuwhy, "run", "--"] if under else []) + command, env))
        number += 1
    even = min(len(times[0]), len(times[1]))
    ratio, low, high = stats.bootstrap_ratio(times[1][:even], times[0][:even])
    return (name, "%+.2f %% (%+.2f to %+.2f)" % tuple(100 * (r - 1) for r in (ratio, low, high)),
            stats.spread(times[1]) + " s", stats.spread(times[0]) + " s", even)


class Turns:
    """The same program without cuwhy, under it, and under it without core dumps; one of them runs at a time."""

    def __init__(self, cuwhy, what):
        program = [sys.executable, os.path.join(HERE, "bench_turns.py"), what]
        kinds = ([], [cuwhy, "run", "--"], [cuwhy, "run", "--no-core-dump", "--"])
        self.processes = [subprocess.Popen(kind + program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                          for kind in kinds]
        for process in self.processes:
            if process.stdout.readline() != "ready\n":
                raise SystemExit("bench-gpu: %s did not start" % what)
        self.times = [[] for _ in kinds]

    def run(self, rounds):
        order = list(range(len(self.processes)))
        for number in range(rounds):
            for which in order if number % 2 else reversed(order):
                process = self.processes[which]
                process.stdin.write("\n")
                process.stdin.flush()
                self.times[which].append(float(process.stdout.readline()))
        for process in self.processes:
            process.stdin.close()
            process.wait()


def in_turns(name, cuwhy, what, rounds):
    turns = Turns(cuwhy, what)
    turns.run(rounds)
    plain, armed, without = turns.times
    cost = ["%+.2f %% (%+.2f to %+.2f)" % tuple(100 * (r - 1) for r in stats.bootstrap_ratio(armed, other))
            for other in (plain, without)]
    return (name, cost[0], cost[1], stats.spread([1000 * t for t in plain]) + " ms", rounds)


def driver_version():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if not shutil.which(query[0]):
        return "driver unknown"
    found = subprocess.run(query, capture_output=True, text=True)
    return found.stdout.strip().splitlines()[0] if found.returncode == 0 else "driver unknown"


def usable():
    probe = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description="cost of recording on a real GPU")
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=60, help="for each kind of whole process")
    parser.add_argument("--part", choices=("outside", "inside", "turns", "whole"), help="only one of the parts")
    args = parser.parse_args()
    if not usable():
        print("bench-gpu: skipped, no device or no PyTorch")
        return 0
    cuwhy = os.path.join(os.path.abspath(args.build), "cuwhy")
    helper = meter.build(os.path.join(os.path.abspath(args.build), "tests"))
    if args.part != "outside":
        print("%s; %s\n" % (driver_version(), stats.processor()), flush=True)
    if args.part in (None, "outside"):
        subprocess.run([sys.executable, os.path.join(HERE, "bench_outside.py"), "--build", args.build,
                        "--seconds", str(10 * args.seconds)], check=True)
    if args.part in (None, "inside"):
        subprocess.run([cuwhy, "run", "--", sys.executable, os.path.join(HERE, "bench_torch.py"),
                        helper], check=True)
    if args.part in (None, "turns"):
        rows = [in_turns("launch-bound loop", cuwhy, "launches", 40), in_turns("loop that waits", cuwhy, "waits", 40),
                in_turns("training step", cuwhy, "training", 30)]
        print("## Core dumps armed, three processes in turn\n")
        stats.table(("block", "cuwhy against none (95 %)", "dumps against no dumps (95 %)", "without cuwhy", "rounds"), rows)
    if args.part in ("outside", "inside", "turns"):
        return 0
    folder = tempfile.mkdtemp(prefix="cuwhy-bench-")
    try:
        rows = [whole_processes("import torch", cuwhy, IMPORT, args.seconds, folder),
                whole_processes("torch.compile, cold", cuwhy, COMPILE, args.seconds, folder)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    count = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True)
    print("## Whole processes, started in turn\n")
    stats.table(("process", "cost (95 % of resamples)", "under cuwhy", "without", "pairs"), rows)
    print("The torch.compile run raises %s audit events." % count.stdout.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
