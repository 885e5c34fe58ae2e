#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cuwhy with PyTorch's own viewer on one memory snapshot, one after the other in the same run.

    bench_snapshot.py [--build build] [--python PYTHON-WITH-TORCH] [--events 850000] [--rounds 3]

cuwhy loads, analyzes and prints the verdict; _memory_viz loads the file and makes the plot (trace_plot), as a program
of its own. Importing PyTorch is measured separately and left out of its time. Needs no GPU.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "snap"))
import make_snapshot  # noqa: E402

IMPORT = "import pickle, sys, torch.cuda._memory_viz as viz\n"
PLOT = IMPORT + """
with open(sys.argv[1], "rb") as f:
    data = pickle.load(f)
with open(sys.argv[2], "w") as f:
    f.write(viz.trace_plot(data))
"""


def run(command):
    """Seconds and peak memory in MiB."""
    start = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = p.stderr.read()
    _, status, usage = os.wait4(p.pid, 0)
    took = time.monotonic() - start
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode not in (0, 1):
        sys.exit(f"{command[0]} failed: {said.decode(errors='replace')[-500:]}")
    return took, usage.ru_maxrss / 1024


def best(command, rounds):
    all_runs = [run(command) for _ in range(rounds)]
    return min(t for t, _ in all_runs), max(m for _, m in all_runs)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--events", type=int, default=850_000)
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    if subprocess.run([o.python, "-c", IMPORT], capture_output=True).returncode:
        print("bench-snapshot: skipped, %s has no PyTorch to compare with" % o.python)
        return 0
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "snap.pickle")
        make = [sys.executable, make_snapshot.__file__, path, "--story", "growth", "--events", str(o.events)]
        subprocess.run(make, check=True)
        size = os.path.getsize(path) / (1 << 20)
        imported = best([o.python, "-c", IMPORT], 2)
        theirs = best([o.python, "-c", PLOT, path, os.path.join(tmp, "out.html")], 1)
        explain = best([os.path.join(o.build, "cuwhy"), "explain", path], o.rounds)
        memory = best([os.path.join(o.build, "cuwhy"), "memory", path], o.rounds)
    took = theirs[0] - imported[0]
    print(f"a snapshot of {size:.0f} MiB, {o.events:,} events or a few more\n")
    print(f"{'':34}{'seconds':>10}{'peak MiB':>10}{'faster':>9}{'memory':>9}")
    print(f"{'import torch (left out below)':34}{imported[0]:10.2f}{imported[1]:10.0f}")
    print(f"{'_memory_viz: load and trace_plot':34}{took:10.2f}{theirs[1]:10.0f}")
    good = True
    for name, mine in (("cuwhy explain", explain), ("cuwhy memory", memory)):
        print(f"{name:34}{mine[0]:10.2f}{mine[1]:10.0f}{took / mine[0]:8.0f}x{mine[1] / theirs[1]:9.3f}")
        good = good and took / mine[0] >= 10 and mine[1] / theirs[1] <= 0.25
    print("\nat least 10 times faster, in at most a quarter of the memory:", "yes" if good else "NO")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
