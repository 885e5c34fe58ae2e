# SPDX-License-Identifier: Apache-2.0
"""One process of bench_outside.py: runs a block of a loop whenever its parent names one, and tells how long it took.

    bench_loops.py [--pause]

Reads names of loops from standard input, a line each; writes seconds to standard output, a line each, and before them a line
when it is ready: 1 if it could not pause. It ends when its input does. --pause: under cuwhy, with recording paused once it has begun.
"""
import ctypes
import sys
import time

import torch

import bench_torch

WARM = 5
ITEMS = 300


def items():
    """Every value is read back, so every operation is waited for."""
    x = torch.ones(1024, device="cuda")

    def run():
        for _ in range(ITEMS):
            x.sum().item()
    return run


LOOPS = {"launches": bench_torch.launch_bound, "allocating": bench_torch.allocating, "items": items,
         "tiny step": lambda: bench_torch.Step(**bench_torch.TINY), "small step": lambda: bench_torch.Step(**bench_torch.GPT2_SMALL)}


def warmed(name):
    run = LOOPS[name]()
    for _ in range(WARM):
        run()
    return run


def main():
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    print(int("--pause" in sys.argv and ctypes.CDLL(None).cuwhy_rec_pause(1) != 0), flush=True)     # what has not begun cannot be paused
    loops = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in loops:
            loops[name] = warmed(name)
        begin = time.perf_counter()
        loops[name]()
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
