# SPDX-License-Identifier: Apache-2.0
"""One of the processes that take turns in bench_gpu.py: runs a block on request.

    bench_turns.py launches|waits|training

Each line on stdin, whatever it says, means "once more"; the answer is the time in seconds.
"""
import sys
import time

import torch

import bench_torch

# A turn is so long that what the others left in the caches does not matter.
TURN = {"launches": 40, "waits": 20, "training": 1}
WAITS = 200


def waits():
    """Work followed by an immediate wait: the call that looks for a dump."""
    x = torch.zeros(1024, device="cuda")

    def run():
        for _ in range(WAITS):
            x.add_(1)
            torch.cuda.synchronize()
    return run


def main():
    what = sys.argv[1]
    block = {"launches": bench_torch.launch_bound, "waits": waits, "training": bench_torch.Step}[what]()

    def run():
        for _ in range(TURN[what]):
            block()

    for _ in range(6):
        block()
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        run()
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
