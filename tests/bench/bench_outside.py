#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuwhy costs, measured from outside: whole processes with and without it, in turn.

    tests/bench/bench_outside.py [--build build] [--parts] [--pairs 30] [--seconds 600] [LOOP ...]

A process runs all the loops of bench_loops.py and reports the median time of a block for each. One process of every
kind makes a round; rounds go on until the 95 % range of every loop's ratio is within half a percent on either side, at
most --pairs of them. `start and exit` is what the process takes beside its loops, seen from its parent: import torch,
CUDA's start, the end.

--parts: also the parts of cuwhy, to find what costs: without core dumps, without Python lines, recording paused (what
is left are armed dumps, wrappers and the loaded library), and the library alone, which sleeps.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bench_gpu  # noqa: E402
import stats  # noqa: E402

NARROW = 0.005
LEAST = 4
GOALS = {"launches": 2, "allocating": 3, "items": 2, "tiny step": 3, "small step": 0.5}     # percent
START, START_GOAL = "start and exit", 50    # ms


def kinds(build, parts):
    """Name, words before the program, variables, words after it; the first one is the measure of the others."""
    cuwhy, library = os.path.join(build, "cuwhy"), os.path.join(build, "libcuwhy-rec.so")
    found = [("without", [], {}, []), ("cuwhy", [cuwhy, "run", "--"], {}, [])]
    if parts:
        found += [("no dumps", [cuwhy, "run", "--no-core-dump", "--"], {}, []),
                  ("no lines", [cuwhy, "run", "--"], {"CUWHY_NO_FRAMES": "1"}, []),
                  ("paused", [cuwhy, "run", "--"], {}, ["--pause"]),
                  ("paused, no dumps", [cuwhy, "run", "--no-core-dump", "--"], {}, ["--pause"]),
                  ("library", [], {"LD_PRELOAD": library}, [])]
    return found


def start(kind, *words):
    """What the process printed last, and how long it took."""
    _, before, variables, after = kind
    command = before + [sys.executable, os.path.join(HERE, "bench_loops.py")] + after + list(words)
    begin = time.perf_counter()
    done = subprocess.run(command, env=dict(os.environ, **variables), capture_output=True, text=True)
    took = time.perf_counter() - begin
    if done.returncode:
        sys.exit("bench-outside: %s failed: %s" % (kind[0], done.stderr[-400:]))
    return json.loads(done.stdout.splitlines()[-1]), took


def measure(kind, loops):
    """Seconds by loop, and those of the process that are not in a loop."""
    said, took = start(kind, *loops)
    if "--pause" in kind[3] and not said["paused"]:
        print("bench-outside: '%s' was not paused" % kind[0])
    return dict(said["blocks"], **{START: took - said["seconds"]})


def ranges(times, names):
    """(kind, loop) -> ratio to the first kind, low, high; for the start and the end the difference in seconds."""
    def compared(kind, loop):
        compare = stats.bootstrap_difference if loop == START else stats.bootstrap_ratio
        return compare(*([t[loop] for t in times[name]] for name in (kind, names[0])), rounds=500)
    return {(kind, loop): compared(kind, loop) for kind in names[1:] for loop in times[kind][0]}


def is_narrow(found):
    return all(high - low <= 2 * NARROW for (_, loop), (_, low, high) in found.items() if loop != START)


def rows(times, found, names):
    for loop in times[names[0]][0]:
        if loop == START:
            goal, cells = "%+d ms" % START_GOAL, ["%+.0f ms (%+.0f to %+.0f)" % tuple(1000 * s for s in found[kind, loop])
                                                  for kind in names[1:]]
        else:
            goal, cells = "%+g %%" % GOALS[loop], ["%+.2f %% (%+.2f to %+.2f)" % tuple(100 * (r - 1) for r in found[kind, loop])
                                                   for kind in names[1:]]
        yield [loop, goal] + cells + ["%.1f ms" % (1000 * stats.median([t[loop] for t in times[names[0]]]))]


def main():
    parser = argparse.ArgumentParser(description="cost of cuwhy, from outside")
    parser.add_argument("--build", default="build")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("loops", nargs="*")
    args = parser.parse_args()
    if not bench_gpu.usable():
        print("bench-outside: skipped, no device or no PyTorch")
        return 0
    all_kinds = kinds(os.path.abspath(args.build), args.parts)
    names = [kind[0] for kind in all_kinds]
    times = {name: [] for name in names}
    shuffle, end = random.Random(), time.monotonic() + args.seconds
    measure(all_kinds[0], args.loops)       # fills the disk cache
    for done in range(args.pairs):
        shuffle.shuffle(all_kinds)
        for kind in all_kinds:
            times[kind[0]].append(measure(kind, args.loops))
        found = ranges(times, names)
        if time.monotonic() > end or done + 1 >= LEAST and is_narrow(found):
            break
    print("%s; %s\n\n## From outside: whole processes in turn, %d of each kind\n" % (bench_gpu.driver_version(), stats.processor(), done + 1))
    stats.table(["block", "goal"] + names[1:] + ["without"], rows(times, found, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
