#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a long log with cuwhy, `grep -c` and ripgrep, one after the other in the same run, from the page cache.

    bench_text.py [--build build] [--megabytes 2048] [--rounds 3]

The log is what a training run writes: steps, progress bars, NCCL's information, warnings; one error near its end. cuwhy must find
it. Needs no GPU.
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

BLOCK = []
for i in range(4000):
    BLOCK.append("2025-06-01 12:%02d:%02d,%03d INFO trainer: epoch %d step %d loss %.5f lr %.2e tokens/s %d grad_norm %.3f\n"
                 % (i % 60, i % 59, i % 1000, i // 500, i, 3.0 / (1 + i / 100), 3e-4, 51000 + i, 0.9 + i % 7 / 10))
    if i % 10 == 0:
        BLOCK.append("[rank%d]: %3d%%|######    | %d/4000 [00:31<03:40,  1.99it/s]\r\n" % (i % 8, i // 40, i))
    if i % 50 == 0:
        BLOCK.append("node%d:311:402 [%d] NCCL INFO comm 0x55d0 rank %d nranks 8 cudaDev %d busId 1b000 - Init COMPLETE\n" % (i % 4, i % 8, i % 8, i % 8))
    if i % 500 == 0:
        BLOCK.append("/opt/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:149: UserWarning: Detected call of lr_scheduler.step()\n")
END = """Traceback (most recent call last):
  File "train.py", line 88, in step
    loss = crit(out, y)
RuntimeError: CUDA error: an illegal memory access was encountered
"""


def timed(command):
    """Seconds, those of a processor, what it printed, and its peak memory in MiB."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    text = child.stdout.read()
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, text, used.ru_maxrss / 1024


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--megabytes", type=int, default=2048)
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    block = "".join(BLOCK).encode()
    with tempfile.NamedTemporaryFile(suffix=".log", dir=os.environ.get("BENCH_DIR")) as f:
        while f.tell() < o.megabytes << 20:
            f.write(block)
        f.write(END.encode())
        f.flush()
        size = f.tell() / 1e6
        tools = [("cuwhy explain", [os.path.join(o.build, "cuwhy"), "explain", "--json", f.name]),
                 ("grep -c (one fixed string)", ["grep", "-c", "-F", "illegal memory access", f.name])]
        if shutil.which("rg"):
            tools.append(("ripgrep -c (one fixed string)", ["rg", "-c", "-j1", "-F", "illegal memory access", f.name]))
        for name, command in tools:
            best = least = float("inf")
            for _ in range(o.rounds):
                seconds, busy, text, memory = timed(command)
                best, least = min(best, seconds), min(least, busy)
            if name.startswith("cuwhy") and json.loads(text)["cause"] != "illegal-access-out-of-bounds":
                raise SystemExit("cuwhy did not find the error: " + text[:300])
            print("%-32s %7.0f MB/s  (%.0f MB in %.2f s, %.2f s of a processor, the best of %d; %.0f MiB of memory)"
                  % (name, size / best, size, best, least, o.rounds, memory))
        if not shutil.which("rg"):
            print("ripgrep is not installed")


if __name__ == "__main__":
    main()
