# SPDX-License-Identifier: Apache-2.0
"""One whole process of bench_outside.py: every loop once, then its times as JSON.

    bench_loops.py [--pause] [LOOP ...]

--pause: under cuwhy, with recording paused once it has begun.
"""
import ctypes
import json
import sys
import time

import torch

import bench_torch
import stats

BLOCKS = 25
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


def block_times(run):
    for _ in range(5):
        run()
    times = []
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return times


def main():
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or list(LOOPS)
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    paused = "--pause" in sys.argv and ctypes.CDLL(None).cuwhy_rec_pause(1) == 0     # what has not begun cannot be paused
    begin = time.perf_counter()
    result = {name: stats.median(block_times(LOOPS[name]())) for name in names}
    print(json.dumps({"blocks": result, "seconds": time.perf_counter() - begin, "paused": paused}), flush=True)


if __name__ == "__main__":
    main()
