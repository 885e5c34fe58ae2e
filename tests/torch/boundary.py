#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The largest batch that a card takes: what a simulated GPU says, and whether a real one agrees.

    boundary.py search --gib 24 [--under PREFIX] [name…] > sim.jsonl    the boundary of each program, by a binary search
    boundary.py confirm [--ballast] sim.jsonl [name…]                   the batches on both sides of it, on a real GPU
    boundary.py one NAME BATCH                                          one try: 0 fits, 3 out of memory
    boundary.py free                                                    free and total bytes as a new process sees them
    boundary.py list                                                    the programs and their steps
    boundary.py ballast                                                 holds as many bytes as the last line of stdin says

search: --gib takes several sizes (16,24). PREFIX is put before each try, with {gib} for the size:
    --under "build/cuwhy run --gpu sim:h200,memory={gib}G"
Without it, search itself runs on that card: cuwhy run --gpu sim:h200,memory=24G python3 tests/torch/boundary.py search --gib 24

confirm: --ballast leaves as much of a larger GPU free as the simulated card had; nothing else may use that GPU meanwhile.
exact: the real GPU has the same boundary. one step: it is the next batch that was tried. off: further away.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB, GIB = 1 << 20, 1 << 30
GRAIN = 2 * MIB         # the driver gives out memory in pages of this size
FITS, FULL = 0, 3
MOST = 1024             # steps: where even this fits, the search ends
# What CUDA and its libraries say when memory is short. PyTorch has a class of its own only for its allocator's part.
SIGNS = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED",
         "CUFFT_ALLOC_FAILED", "cudaErrorMemoryAllocation", "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED")


# --- the processes that are tried ----------------------------------------------------------------


def one(name, batch):
    import torch
    import programs_boundary
    torch.manual_seed(0)
    began = time.time()
    try:
        programs_boundary.PROGRAMS[name](batch)
        torch.cuda.synchronize()
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(sign in str(error) for sign in SIGNS):
            raise
        print("%s: %s" % (type(error).__name__, str(error).splitlines()[0]), file=sys.stderr, flush=True)
        return FULL
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"program": name, "batch": batch, "allocated": torch.cuda.max_memory_allocated(),
                      "reserved": torch.cuda.max_memory_reserved(), "used": total - free, "seconds": round(time.time() - began, 1)}))
    return FITS


def free():
    import torch
    now, total = torch.cuda.mem_get_info()
    print(json.dumps({"free": now, "total": total, "torch": torch.__version__, "gpu": torch.cuda.get_device_name()}))


def steps():
    import programs_boundary
    print(json.dumps({name: function.step for name, function in programs_boundary.PROGRAMS.items()}))


def ballast():
    """Blocks of a gibibyte and a rest. Each line of stdin is the sum to hold from now on, each line of stdout the sum that is held."""
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"      # each tensor a cudaMalloc of its own, given back as soon as it goes
    import torch
    torch.cuda.init()
    torch.cuda.mem_get_info()       # makes the context, which takes memory, too
    blocks = []
    print(0, flush=True)
    for line in sys.stdin:
        wanted = max(0, int(line)) // GRAIN * GRAIN
        while sum(map(len, blocks)) > wanted:
            blocks.pop()
        while (missing := wanted - sum(map(len, blocks))) > 0:
            blocks.append(torch.empty(min(missing, GIB), dtype=torch.uint8, device="cuda"))
        print(sum(map(len, blocks)), flush=True)


# --- starting them -------------------------------------------------------------------------------


class Broken(Exception):
    """A try that ended neither well nor for want of memory."""


def start(words, prefix=(), limit=60):
    try:
        return subprocess.run([*prefix, sys.executable, os.path.abspath(__file__), *map(str, words)], capture_output=True, text=True,
                              timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise Broken("%s: not done after %d s" % (" ".join(map(str, words)), limit)) from error


def fits(name, batch, prefix=(), limit=60):
    began = time.time()
    done = start(["one", name, batch], prefix, limit)
    print("  %s %d: %s, %.1f s" % (name, batch, {FITS: "fits", FULL: "full"}.get(done.returncode, "error"), time.time() - began),
          file=sys.stderr, flush=True)
    if done.returncode not in (FITS, FULL):
        lines = [line for line in done.stderr.strip().splitlines() if line and not line.startswith("cuwhy:")]
        raise Broken("%s %d ended with %d: %s" % (name, batch, done.returncode, (lines or ["no message"])[-1][:300]))
    return done.returncode == FITS


def told(command, prefix=(), limit=60):
    """What a process of its own says to free or list. PyTorch may only be there under the prefix."""
    done = start([command], prefix, limit)
    if done.returncode:
        raise Broken("%s: %s" % (command, (done.stderr.strip().splitlines() or ["no message"])[-1][:300]))
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


# --- search --------------------------------------------------------------------------------------


def boundary(name, step, prefix, limit):
    """The largest batch that fits, 0 if none does, and the smallest that does not, None if there is none."""
    low, high = 0, 8
    while fits(name, high * step, prefix, limit):
        low, high = high, 2 * high
        if high > MOST:
            return low * step, None
    while high - low > 1:
        middle = (low + high) // 2
        if fits(name, middle * step, prefix, limit):
            low = middle
        else:
            high = middle
    return low * step, high * step


def search(words):
    parser = argparse.ArgumentParser(prog="boundary.py search")
    parser.add_argument("--gib", required=True, help="sizes of the card, with commas")
    parser.add_argument("--under", default="", help="put before each try; {gib} is the size")
    parser.add_argument("--limit", type=int, default=300, help="seconds a try")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(words)
    failed = 0
    for gib in (int(size) for size in options.gib.split(",")):
        prefix = shlex.split(options.under.replace("{gib}", str(gib)))
        card = told("free", prefix, options.limit)
        for name, step in told("list", prefix, options.limit).items():
            if options.names and name not in options.names:
                continue
            row = {"program": name, "gib": gib}
            try:
                row["fits"], row["fails"] = boundary(name, step, prefix, options.limit)
                row["step"] = step
            except Broken as error:
                row["error"], failed = str(error), 1
            print(json.dumps({**row, "free": card["free"], "total": card["total"], "torch": card["torch"]}), flush=True)
    return failed


# --- confirm -------------------------------------------------------------------------------------


class Ballast:
    """A process that holds memory until a new process sees `target` bytes free, give or take a page."""

    def __init__(self, target):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "ballast"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        try:
            self.fill(target)
        except BaseException:
            self.end()
            raise

    def fill(self, target):
        held = self.answer()
        for _ in range(6):
            more = told("free")["free"] - target
            if abs(more) <= GRAIN:
                self.held, self.target = held, target
                print("ballast: %.1f MiB held, a new process sees %.1f MiB free, %+.1f of what it should" %
                      (held / MIB, (target + more) / MIB, more / MIB), file=sys.stderr, flush=True)
                return
            if held + more < 0:
                break
            held = self.hold(held + round(more / GRAIN) * GRAIN)
        raise Broken("no ballast leaves %.1f MiB free: with %.1f MiB held it is %+.1f" % (target / MIB, held / MIB, more / MIB))

    def move(self, target):
        """To another target, without a look."""
        self.held, self.target = self.hold(self.held + (self.target - target) // GRAIN * GRAIN), target

    def hold(self, count):
        print(count, file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Broken("the ballast ended")
        return int(line)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def judge(row):
    """The verdict on one row, and the real boundary as far as it is known. Three tries at most."""
    name, low, high, step = row["program"], row["fits"], row["fails"], row["step"]
    if low and not fits(name, low):
        lower = low - step
        if not lower or fits(name, lower):
            return "one step", "%d" % lower
        return "off", "below %d" % lower
    if high is None or not fits(name, high):
        return "exact", "%d" % low if high else "%d or more" % low
    if not fits(name, high + step):
        return "one step", "%d" % high
    return "off", "%d or more" % (high + step)


def confirm(words):
    parser = argparse.ArgumentParser(prog="boundary.py confirm")
    parser.add_argument("rows", help="what search printed")
    parser.add_argument("--ballast", action="store_true", help="leave only as much memory free as the simulated card had")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(words)
    with open(options.rows, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.startswith("{")]
    rows = [row for row in rows if not options.names or row["program"] in options.names]
    counts = {}
    print("%-16s %5s %10s %14s  %s" % ("program", "GiB", "simulated", "real", "verdict"), flush=True)
    for gib in sorted({row["gib"] for row in rows}):
        group = [row for row in rows if row["gib"] == gib]
        weight, broken = None, None
        try:
            weight = Ballast(group[0]["free"]) if options.ballast else None
        except Broken as error:
            broken = str(error)
        try:
            for row in group:
                real = ""
                try:
                    if broken or "error" in row:
                        raise Broken(broken or row["error"])
                    verdict, real = judge(row)
                except Broken as error:
                    verdict = "error: %s" % error
                counts[verdict.split(":")[0]] = counts.get(verdict.split(":")[0], 0) + 1
                print("%-16s %5d %10s %14s  %s" % (row["program"], gib, row.get("fits", ""), real, verdict), flush=True)
        finally:
            if weight:
                weight.end()
    print("%d boundaries: %s" % (len(rows), ", ".join("%d %s" % (n, word) for word, n in sorted(counts.items()))))
    return 1 if counts.keys() & {"off", "error"} else 0


def main():
    sys.path.insert(0, HERE)
    words = sys.argv[1:]
    if words[:1] == ["one"] and len(words) == 3:
        return one(words[1], int(words[2]))
    if words == ["free"]:
        return free()
    if words == ["list"]:
        return steps()
    if words == ["ballast"]:
        return ballast()
    if words[:1] == ["search"]:
        return search(words[1:])
    if words[:1] == ["confirm"]:
        return confirm(words[1:])
    return __doc__.strip()


if __name__ == "__main__":
    sys.exit(main())
