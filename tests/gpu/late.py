#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a single stray store raise its error at the same call with and without cuwhy?

    tests/gpu/late.py [--build build] [--gpu sim:tiny,late_dumps] [--measure] [name…]

With core dumps armed, the driver lets the call that waits for such a kernel return 0; the recorder looks at the GPU
before it believes that (docs/develop/coredump.md). Programs run without cuwhy side by side, and under it one after another,
because the driver takes longer when several programs fault at once. A name is part of a program's name. Without a GPU
everything is skipped, with a message.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as gpu  # noqa: E402

# Kernel, blocks, threads, milliseconds that it stays, call that waits, milliseconds before that call: when the GPU runs
# again and the error has not come yet, only the dump's file can tell.
PROGRAMS = [("driver", *row.split()) for row in (
    "store 1 1 0 context", "store 1 32 0 stream", "store 1 32 0 event", "store 1 32 0 copy",
    "store 2000 128 0 context", "store 132 1024 1 stream", "store 64 128 10 context", "store 2000 128 1 stream",
    "end 1 32 1 context", "end 264 256 10 stream", "byte 1 32 0 context", "vector 64 128 0 stream",
    "atomic 1 32 0 context", "load 1 32 0 stream", "null 1 32 0 context",
    "store 1 32 0 context 30", "store 1 32 0 context 60", "store 1 32 0 context 90")]
PROGRAMS += [("cupy", "device"), ("cupy", "get"), ("cupy", "event"), ("triton", "synchronize"), ("triton", "item")]
NEEDS = {"driver": {"GPU"}, "cupy": {"GPU", "cupy"}, "triton": {"GPU", "torch", "triton"}}
ARMED = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
         "CUDA_COREDUMP_GENERATION_FLAGS": "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,"
                                           "skip_local_memory,skip_constbank_memory,skip_abort"}
LIMIT = 60      # seconds for one program
PAUSE = 6       # place of the last word


class Ran:
    """A program that has run: its status, what it printed, how long the call took that raised."""

    def __init__(self, command, env):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=env)
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            self.status, self.out, self.err = -1, "still running after %d s" % LIMIT, ""

    def where(self):
        last = (self.out.splitlines() or ["nothing"])[-1]
        took = [line for line in self.err.splitlines() if line.endswith(" ms") and len(line) < 12]
        return last.replace("raised by ", "") + (" (%s)" % took[0] if took else "")


class Runner:
    """Knows how to start a program with and without cuwhy, on a real GPU or the simulated one."""

    def __init__(self, build, python, sim):
        self.cuwhy, self.python, self.sim = os.path.abspath(os.path.join(build, "cuwhy")), python, sim
        self.library = os.path.join(os.path.abspath(build), "sim")

    def command(self, words):
        return [self.python, os.path.join(HERE, "late_program.py")] + list(words)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY")}
        return dict(env, CUWHY_WRITES_MODE="real", PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", **more)

    def plain(self, words):
        sim = {"LD_LIBRARY_PATH": self.library, "CUWHY_SIM": self.sim[len("sim:"):]} if self.sim else {}
        return Ran(self.command(words), self.environment(**sim))

    def under(self, words, folder):
        options = ["--out", folder] + (["--gpu", self.sim] if self.sim else [])
        return Ran([self.cuwhy, "run"] + options + ["--"] + self.command(words), self.environment())

    def measure(self, kind, folder):
        print(Ran(self.command(["measure", kind]),
                  self.environment(CUDA_COREDUMP_FILE=os.path.join(folder, "core-%p"), **ARMED)).out.strip())


def compare(runner, programs, folder):
    began, bad = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        without = list(pool.map(runner.plain, programs))
    for number, (words, plain) in enumerate(zip(programs, without), 1):
        run = runner.under(words, os.path.join(folder, str(number)))
        same, limit = (plain.status, plain.out) == (run.status, run.out), len(words) > PAUSE
        bad += not same and not limit
        print("%s %d - %-34s without: %-30s with: %s%s" % (
            "ok" if same else "not ok", number, " ".join(words), plain.where(), run.where(),
            "" if same or not limit else " # TODO a known limit"), flush=True)
        if not same and not limit:
            print("    # status %d and %d\n    # %s" % (plain.status, run.status,
                                                       "\n    # ".join(run.err.splitlines()[-5:])))
    counted = sum(len(words) <= PAUSE for words in programs)
    print("%d of %d raise at the same call with and without cuwhy, %.0f s" % (counted - bad, counted,
                                                                             time.monotonic() - began))
    return bad


def arguments():
    parser = argparse.ArgumentParser(description="stray stores, with and without cuwhy")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--gpu", help="the simulated GPU, to test this test: sim:tiny,late_dumps")
    parser.add_argument("--measure", action="store_true", help="also print what a memset on a stopped GPU takes")
    parser.add_argument("names", nargs="*", help="run only programs whose name contains one of these")
    return parser.parse_args()


def main():
    args = arguments()
    missing = gpu.what_is_missing(args.python) - ({"GPU"} if args.gpu else set())
    chosen = [p for p in PROGRAMS if not args.names or any(name in " ".join(p) for name in args.names)]
    able = [p for p in chosen if not NEEDS[p[0]] & missing and not (args.gpu and p[0] != "driver")]
    for words in chosen:
        if words not in able:
            print("ok - %s # SKIP no %s" % (" ".join(words), ", ".join(sorted(NEEDS[words[0]] & missing)) or "real GPU"))
    runner = Runner(args.build, args.python, args.gpu)
    with tempfile.TemporaryDirectory(prefix="cuwhy-late-") as folder:
        bad = compare(runner, able, folder) if able else 0
        for kind in ("device", "pinned") if args.measure and able else ():
            runner.measure(kind, folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
