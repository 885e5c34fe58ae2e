#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuwhy memory A B`, `cuwhy memory --watch` and the pytest marker on a real GPU, against what PyTorch itself says.

    tests/gpu/memory_live.py [--build build] [--sim GPU] [--frameworks FOLDER]

With --sim everything runs on a simulated GPU, to try the script itself. Needs no network; --frameworks adds the tests of tests/frameworks on
the real GPU, with packages that were put there before (tests/frameworks/get.py). Without a GPU or PyTorch everything is skipped."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MIB = 1 << 20
PROGRAM = """
import sys, torch
width = int(sys.argv[1])
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).cuda()
optimizer = torch.optim.Adam(model.parameters())


def step(kept):
    x = torch.randn(width, 2048, device="cuda")  # <- batch
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if width > 1024:
        kept.append(torch.zeros(8 << 20, device="cuda"))  # <- new


kept = []
for _ in range(5):
    step(kept)
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), flush=True)
sys.stdin.readline()
for _ in range(3):
    step(kept)
print(torch.cuda.memory_allocated(), flush=True)
sys.stdin.readline()
"""


def line_of(mark):
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# <- " + mark))


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.cuwhy, self.bad = args, folder, os.path.join(os.path.abspath(args.build), "cuwhy"), 0
        self.program = os.path.join(folder, "program.py")
        with open(self.program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)

    def check(self, good, what):
        self.bad += not good
        print("%s - %s" % ("ok" if good else "not ok", what), flush=True)

    def start(self, width, out):
        words = [self.cuwhy, "run", "--out", out] + (["--gpu", self.args.sim] if self.args.sim else [])
        return subprocess.Popen([*words, "--", sys.executable, self.program, str(width)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        got = subprocess.run([self.cuwhy, "memory", "--json", *words], stdout=subprocess.PIPE, text=True, check=False)
        return got.returncode, json.loads(got.stdout)


def watched(bench, program):
    """What --watch says of the program, at two moments; the seconds that one frame takes."""
    watch = subprocess.Popen([bench.cuwhy, "memory", "--watch", "--json"], stdout=subprocess.PIPE, text=True)

    def frame(allocated):
        for _ in range(20):
            seen = [p for p in json.loads(watch.stdout.readline())["recorded"] if bench.program in p["command"]]
            if seen and seen[0]["devices"] and seen[0]["devices"][0]["allocated"] == allocated:
                return seen[0]["devices"][0]
        return None

    first, peak = map(int, program.stdout.readline().split())
    ledger = frame(first)
    bench.check(ledger is not None, "--watch shows what PyTorch has allocated: %.1f MiB" % (first / MIB))
    bench.check(ledger and ledger["peak_allocated"] == peak, "and its peak: %.1f MiB" % (peak / MIB))
    bench.check(ledger and sum(x["bytes"] for x in ledger["lines"] if x["part"] == "tensors") == first, "its lines add up")
    program.stdin.write("go\n")
    program.stdin.flush()
    second = int(program.stdout.readline())
    bench.check(frame(second) is not None, "--watch follows: %.1f MiB" % (second / MIB))
    watch.send_signal(signal.SIGINT)
    bench.check(watch.wait(60) == 0, "Ctrl-C ends it with 0")
    program.stdin.close()
    bench.check(program.wait(120) == 0, "the watched program ends with 0")
    return peak


def compare(bench):
    before, after = (os.path.join(bench.folder, name) for name in ("before", "after"))
    peaks = [watched(bench, bench.start(width, out)) for width, out in ((512, before), (2048, after))]
    status, answer = bench.ask("--max-growth", "1%", before, after)
    device = answer["compared"][0]
    print("# peak %.1f MiB, then %.1f MiB; growth %.1f MiB" % (peaks[0] / MIB, peaks[1] / MIB, device["growth"] / MIB))
    bench.check(status == 1 and answer["exceeded"], "--max-growth 1% is exceeded")
    lines = {c["line"]: c for c in device["changes"] if c.get("line")}
    batch, new = lines.get(line_of("batch")), lines.get(line_of("new"))
    bench.check(batch and batch["growth"] == (2048 - 512) * 2048 * 4, "the batch has grown by what it has grown")
    bench.check(new and new["new"] and new["after"] % (32 * MIB) == 0, "the new line is marked as new")
    status, answer = bench.ask("--at", "peak,end", after)
    bench.check(status == 0 and answer["compared"][0]["growth"] < 0, "less is held at the end than at the peak")


def frame_time(bench):
    began = time.monotonic()
    watch = subprocess.Popen([bench.cuwhy, "memory", "--watch", "--json"], stdout=subprocess.PIPE, text=True)
    first = watch.stdout.readline()
    print("# the first frame took %.2f s" % (time.monotonic() - began))
    if first.startswith('{"schema":1,"failure"'):
        watch.wait(60)
        return
    stamps = [json.loads(watch.stdout.readline())["mono_ns"] for _ in range(5)]
    watch.send_signal(signal.SIGINT)
    watch.wait(60)
    gaps = [(b - a) / 1e9 for a, b in zip(stamps, stamps[1:])]
    print("# seconds from frame to frame: %s" % " ".join("%.2f" % g for g in gaps))
    bench.check(all(0.5 < g < 3 for g in gaps), "a frame a second")


def frameworks(bench):
    words = [sys.executable, os.path.join(ROOT, "tests", "frameworks", "run.py"), "--real", "--build", bench.args.build,
             "--frameworks", bench.args.frameworks]
    bench.check(subprocess.run(words, check=False).returncode == 0, "tests/frameworks on the real GPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--sim", help="on this simulated GPU: sim:rtx3060")
    parser.add_argument("--frameworks", help="a folder that tests/frameworks/get.py has filled")
    args = parser.parse_args()
    if not args.sim:
        has = subprocess.run([sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"], stderr=subprocess.DEVNULL, check=False)
        if has.returncode:
            print("memory_live: skipped, there is no GPU or no PyTorch")
            return 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-live-") as folder:
        bench = Bench(args, folder)
        compare(bench)
        frame_time(bench)
        if args.frameworks:
            frameworks(bench)
    print("memory_live: %s" % ("%d failed" % bench.bad if bench.bad else "all passed"))
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
