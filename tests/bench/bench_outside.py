#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuwhy costs, measured from outside: processes with and without it, side by side.

    tests/bench/bench_outside.py [--build build] [--parts] [--pairs 30] [--seconds 600] [LOOP ...]

One process of every kind makes a round. They are started one after the other, and then run blocks of the loops of
bench_loops.py in turn: whatever disturbs the machine for longer than a block disturbs all of them, so that pairs of
neighboring blocks are compared. How a process happens to lie in memory matters too, so a round gives one ratio a loop, and rounds go on
until the 95 % range of every loop's ratio is within half a percent on either side, at most --pairs of them. `start and exit`
is what the process takes before it is ready (import torch, CUDA's start) and after its last block.

--parts: also the parts of cuwhy, to find what costs: without core dumps, without Python lines, recording paused (what
is left are armed dumps, wrappers and the loaded library), and the library alone, which sleeps.
"""
import argparse
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
BLOCKS = 24
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


class Process:
    """One process of a kind; its blocks are run by name."""

    def __init__(self, kind):
        _, before, variables, after = kind
        begin = time.perf_counter()
        self.child = subprocess.Popen(before + [sys.executable, os.path.join(HERE, "bench_loops.py")] + after, text=True,
                                      env=dict(os.environ, **variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.name = kind[0]
        if self.told():
            print("bench-outside: '%s' was not paused" % self.name)
        self.started = time.perf_counter() - begin

    def told(self):
        line = self.child.stdout.readline()
        if not line:
            sys.exit("bench-outside: %s failed with status %d" % (self.name, self.child.wait()))
        return float(line)

    def block(self, loop):
        self.child.stdin.write(loop + "\n")
        self.child.stdin.flush()
        return self.told()

    def end(self):
        """Seconds that its start and its end took."""
        begin = time.perf_counter()
        self.child.stdin.close()
        if self.child.wait():
            sys.exit("bench-outside: %s ended with status %d" % (self.name, self.child.returncode))
        return self.started + time.perf_counter() - begin


def measure(kinds_now, loops):
    """One round: kind -> loop -> seconds of its blocks; for the start and the end one number."""
    processes = [Process(kind) for kind in kinds_now]
    times = {process.name: {loop: [] for loop in loops} for process in processes}
    for loop in loops:
        for process in processes:       # warms up; a process is not compared with one that has yet to
            process.block(loop)
        for nth in range(BLOCKS):
            for process in processes if nth % 2 else reversed(processes):
                times[process.name][loop].append(process.block(loop))
    for process in processes:
        times[process.name][START] = process.end()
    return times


def compared(round_, kind, first):
    """Loop -> ratio to the first kind; for the start and the end the difference in seconds."""
    mine, others = round_[kind], round_[first]
    return {loop: mine[loop] - others[loop] if loop == START else
            stats.median([a / b for a, b in zip(mine[loop], others[loop])]) for loop in mine}


def ranges(rounds, names):
    """(kind, loop) -> median of the rounds, low, high."""
    found = {}
    for kind in names[1:]:
        each = [compared(r, kind, names[0]) for r in rounds]
        found.update({(kind, loop): stats.bootstrap_median([e[loop] for e in each]) for loop in each[0]})
    return found


def is_narrow(found):
    return all(high - low <= 2 * NARROW for (_, loop), (_, low, high) in found.items() if loop != START)


def rows(rounds, found, names):
    for loop in rounds[0][names[0]]:
        if loop == START:
            goal, cells = "%+d ms" % START_GOAL, ["%+.0f ms (%+.0f to %+.0f)" % tuple(1000 * s for s in found[kind, loop])
                                                  for kind in names[1:]]
            plain = [r[names[0]][loop] for r in rounds]
        else:
            goal, cells = "%+g %%" % GOALS[loop], ["%+.2f %% (%+.2f to %+.2f)" % tuple(100 * (r - 1) for r in found[kind, loop])
                                                   for kind in names[1:]]
            plain = [t for r in rounds for t in r[names[0]][loop]]
        yield [loop, goal] + cells + ["%.1f ms" % (1000 * stats.median(plain))]


def main():
    parser = argparse.ArgumentParser(description="cost of cuwhy, from outside")
    parser.add_argument("--build", default="build")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("loops", nargs="*", help="of: " + ", ".join(GOALS))
    args = parser.parse_args()
    if not bench_gpu.usable():
        print("bench-outside: skipped, no device or no PyTorch")
        return 0
    all_kinds, loops = kinds(os.path.abspath(args.build), args.parts), args.loops or list(GOALS)
    names, rounds = [kind[0] for kind in all_kinds], []
    shuffle, end = random.Random(), time.monotonic() + args.seconds
    measure(all_kinds[:1], loops[:1])       # fills the disk cache
    for done in range(args.pairs):
        shuffle.shuffle(all_kinds)
        rounds.append(measure(all_kinds, loops))
        found = ranges(rounds, names)
        if time.monotonic() > end or done + 1 >= LEAST and is_narrow(found):
            break
    print("%s; %s\n\n## From outside: processes side by side, %d of each kind\n" %
          (bench_gpu.driver_version(), stats.processor(), done + 1))
    stats.table(["block", "goal"] + names[1:] + ["without"], rows(rounds, found, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
