#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guard mode on a real GPU: silent mistakes that it must name, healthy programs that it must leave alone, what it costs.

    tests/gpu/guard.py [--build build] [-j N] [--sanitizer] [--cost] [--gpu sim:h200 --torch FOLDER] [--json FILE] [name…]

Each planted program (guard_programs.py) runs without cuwhy, which must notice nothing, and under `cuwhy run --guard`, which must name the cause, the line
that launched the kernel, the line that allocated what it hit, and the one that freed it. With --sanitizer also under compute-sanitizer, PyTorch's cache off.
Healthy programs print a hash of their results: the same with `align=256`; with 16 bytes the same, or it is listed. Where they differ, the plain program runs
again: if it differs by itself, that is listed and proves nothing. --cost prints a table. With --gpu the
simulated GPU tests this test; --torch is a folder with PyTorch (by default the one that tests/torch/check.py installs). Without a GPU or PyTorch everything is skipped, with a message.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as gpu  # noqa: E402

PROGRAMS = os.path.join(HERE, "guard_programs.py")
LIMIT = 600     # seconds for one program
SANITIZED = 90  # and under compute-sanitizer, which is slow where a program has thousands of kernels
COSTS = (("launch-bound", 100), ("gpt2-small", 20), ("resnet50", 20))
SIM_CANNOT = {"cupy", "triton", "nvcc", "card"}     # its kernels compute nothing
ENTRY = re.compile(r"^@(planted|healthy)\(([^\n]*)\)\ndef (\w+)", re.M)
CAUSES = {"OVERRUN": "illegal-access-out-of-bounds", "FREED": "illegal-access-use-after-free", "SLACK": "overrun-behind-allocation",
          "VALUES": "uninitialized-read", "NOTHING": "none"}


class Program:
    """One program: what is expected, and on which lines."""

    def __init__(self, kind, words, name, source):
        self.kind, self.name = kind, name
        self.needs = set(re.findall(r'"(cupy|triton|nvcc|card)"', words))
        guard = re.search(r'guard="([^"]+)"', words)
        self.guard = guard.group(1) if guard else "--guard"
        self.cause = CAUSES.get(words.split(",")[0].strip(), "none") if kind == "planted" else "none"
        self.lines = {}
        for number, line in enumerate(source.split("\n"), 1):
            for mark in ("bad", "made", "freed"):
                if re.search(r"# %s %s(?:$| #)" % (mark, name), line):
                    self.lines[mark] = number


def load(names):
    with open(PROGRAMS, encoding="utf-8") as stream:
        source = stream.read()
    found = [Program(*entry, source) for entry in ENTRY.findall(source)]
    return [p for p in found if not names or any(name in p.name for name in names)]


class Ran:
    """A program that has run."""

    def __init__(self, command, env, limit=LIMIT):
        began = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            self.status, self.out, self.err = -1, "", "still running after %d s" % limit
        self.seconds = time.monotonic() - began

    def last(self):
        return (self.out.strip().splitlines() or ["-"])[-1]


class Runner:
    """Knows how to start a program plainly, guarded, and under compute-sanitizer."""

    def __init__(self, args, folder):
        self.cuwhy = os.path.abspath(os.path.join(args.build, "cuwhy"))
        self.python, self.sim, self.torch, self.folder = args.python, args.gpu, args.torch, folder
        self.sanitizer, self.numbers = gpu.find_tool("compute-sanitizer"), itertools.count(1)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY")}
        env.update(CUWHY_WRITES_MODE="real", PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", CUBLAS_WORKSPACE_CONFIG=":4096:8", **more)
        if self.torch:
            env["PYTHONPATH"] = self.torch
        return env

    def words(self, name, *more):
        return [self.python, PROGRAMS, name] + [str(word) for word in more]

    def plain(self, name, *more):
        """On the simulated GPU under cuwhy, which brings it, but not guarded."""
        if self.sim:
            return Ran([self.cuwhy, "run", "--no-core-dump", "--gpu", self.sim, "--"] + self.words(name, *more), self.env())
        return Ran(self.words(name, *more), self.env())

    def guarded(self, name, guard, *more):
        out = os.path.join(self.folder, "%d-%s" % (next(self.numbers), name))
        options = [guard, "--out", out] + (["--gpu", self.sim] if self.sim else [])
        ran = Ran([self.cuwhy, "run"] + options + ["--"] + self.words(name, *more), self.env())
        ran.verdict = {}
        if os.path.exists(os.path.join(out, "verdict.json")):
            with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
                ran.verdict = json.load(stream)
        return ran

    def sanitized(self, name, *more):
        return Ran([self.sanitizer, "--error-exitcode", "9", "--target-processes", "all"] + self.words(name, *more),
                   self.env(PYTORCH_NO_CUDA_MEMORY_CACHING="1"), SANITIZED)


def problems_of(program, ran, sim):
    """What the verdict lacks. The simulated GPU's code computes every address from a kernel's first parameter, which in reads is another tensor."""
    v, lines = ran.verdict, program.lines
    if v.get("cause") != program.cause:
        yield "cause %s, expected %s" % (v.get("cause"), program.cause)
        return
    where = v.get("where") or {}
    seen = {frame["line"] for frame in where.get("stack") or [] if frame["file"].endswith("guard_programs.py")} | {where.get("line")}
    if "bad" in lines and lines["bad"] not in seen:
        yield "line %s, expected %d" % (where.get("line"), lines["bad"])
    why = " ".join(v.get("why") or [])
    for mark in ("made", "freed"):
        if mark in lines and not (sim and program.cause == CAUSES["OVERRUN"] and "read" in program.name) and not re.search(r"guard_programs\.py:%d\b" % lines[mark], why):
            yield "the line that %s it (%d) is not in: %s" % ("allocated" if mark == "made" else "freed", lines[mark], why)


def try_planted(runner, program, args):
    plain = runner.plain(program.name)
    ran = runner.guarded(program.name, program.guard)
    bad = list(problems_of(program, ran, runner.sim))
    if plain.status and not (runner.sim and program.name in ("driver_past", "pool_past")):    # there, sizes are exact
        bad.append("the plain program noticed it, too (status %d)" % plain.status)
    row = {"program": program.name, "cause": ran.verdict.get("cause"), "certainty": ran.verdict.get("certainty"), "plain": plain.status,
           "seconds": round(ran.seconds, 1), "problems": bad}
    if args.sanitizer and runner.sanitizer:
        checked = runner.sanitized(program.name)
        row["sanitizer"] = None if checked.status == -1 else checked.status == 9 or "Invalid __" in checked.out + checked.err
    if bad:
        row["tail"] = ran.err[-1500:]
    return row


def differs_by_itself(runner, program, plain, times=2):
    """Does the program without cuwhy print something else when it runs again?"""
    return any(runner.plain(program.name).last() != plain.last() for _ in range(times))


def try_healthy(runner, program):
    plain = runner.plain(program.name)
    wide, narrow = runner.guarded(program.name, "--guard=align=256"), runner.guarded(program.name, "--guard")
    bad = []
    for what, ran in (("align=256", wide), ("align=16", narrow)):
        if ran.status != plain.status or ran.verdict.get("cause") != "none" or ran.verdict.get("notes"):
            bad.append("%s: status %d (without: %d), cause %s" % (what, ran.status, plain.status, ran.verdict.get("cause")))
    if plain.status:
        bad.append("the plain program fails: " + plain.err[-300:])
    same, same_at_16 = (bool(runner.sim) or ran.last() == plain.last() for ran in (wide, narrow))
    by_itself = not (same and same_at_16) and differs_by_itself(runner, program, plain)
    if not same and not by_itself:
        bad.append("align=256: %s, without: %s" % (wide.last(), plain.last()))
    guard = narrow.verdict.get("guard") or {}
    return {"program": program.name, "problems": bad, "same_at_16": same_at_16 or by_itself, "by_itself": by_itself, "guarded": guard.get("guarded"),
            "not_guarded": guard.get("not_guarded"), "tail": (wide.err + narrow.err)[-1500:] if bad else ""}


def tell(number, row, more):
    print("%s %d - %-24s %s" % ("not ok" if row["problems"] else "ok", number, row["program"], more), flush=True)
    for problem in row["problems"]:
        print("    # " + problem)
    for line in row.get("tail", "").splitlines()[-12:] if row["problems"] else ():
        print("    | " + line)


def milliseconds(ran):
    found = re.search(r"^ms ([\d.]+)$", ran.out, re.M)
    return float(found.group(1)) if found else None


def costs(runner, args):
    """Plain, guarded and under compute-sanitizer, one after another in one run."""
    rows = []
    for kind, steps in COSTS:
        steps = 3 if runner.sim else steps
        row = {"step": kind, "plain": milliseconds(runner.plain("cost", kind, steps)),
               "guard": milliseconds(runner.guarded("cost", "--guard", kind, steps)),
               "values": milliseconds(runner.guarded("cost", "--guard=values", kind, steps))}
        if args.sanitizer and runner.sanitizer:
            row["sanitizer"] = milliseconds(runner.sanitized("cost", kind, 3))
        times = lambda way: "%.1f ms (%.1fx)" % (row[way], row[way] / row["plain"]) if row.get(way) and row.get("plain") else "-"
        print("cost %-14s plain %-16s guard %-20s values %-20s sanitizer %s" % (
            kind, times("plain"), times("guard"), times("values"), times("sanitizer")), flush=True)
        rows.append(row)
    return rows


def arguments():
    parser = argparse.ArgumentParser(description="cuwhy run --guard on a real GPU")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--sanitizer", action="store_true", help="also run the planted programs and the cost table under compute-sanitizer")
    parser.add_argument("--cost", action="store_true", help="also print what it costs")
    parser.add_argument("--gpu", help="the simulated GPU, to test this test: sim:h200")
    parser.add_argument("--torch", help="folder with PyTorch, for --gpu")
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="programs at a time; costs are measured one at a time")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("names", nargs="*", help="run only programs whose name contains one of these")
    return parser.parse_args()


def main():
    args = arguments()
    if args.gpu and not args.torch:
        sys.path.insert(0, os.path.join(HERE, "..", "torch"))
        import check
        args.torch, why = check.install("2.11.0")
        if not args.torch:
            print("guard: skipped, there is no PyTorch: %s" % why)
            return 0
    missing = SIM_CANNOT if args.gpu else gpu.what_is_missing(args.python)
    if missing & {"GPU", "torch"}:
        print("guard: skipped, there is no %s" % " and no ".join(sorted(missing & {"GPU", "torch"})))
        return 0
    results, number, skipped = {"planted": [], "healthy": [], "cost": []}, 0, 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-guard-") as folder:
        runner = Runner(args, folder)
        programs = load(args.names)
        able = [program for program in programs if not program.needs & missing]
        for program in programs:
            if program not in able:
                number, skipped = number + 1, skipped + 1
                print("ok %d - %-24s # SKIP no %s" % (number, program.name, ", ".join(sorted(program.needs & missing))), flush=True)
        pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        tried = {pool.submit(try_planted, runner, p, args) if p.kind == "planted" else pool.submit(try_healthy, runner, p): p for p in able}
        for done in concurrent.futures.as_completed(tried):
            program, row = tried[done], done.result()
            number += 1
            if program.kind == "planted":
                more = "%s, %s%s" % (row["cause"], row["certainty"],
                                     ", sanitizer: %s" % {True: "found", False: "not found", None: "still running"}[row["sanitizer"]] if "sanitizer" in row else "")
            else:
                more = "%s guarded%s%s%s" % (row["guarded"], "" if row["same_at_16"] else ", DIFFERS at 16 bytes",
                                             ", differs by itself" if row["by_itself"] else "",
                                             ", not: %s" % row["not_guarded"] if row["not_guarded"] else "")
            results[program.kind].append(row)
            tell(number, row, more)
        if args.cost:
            results["cost"] = costs(runner, args)
    bad = sum(bool(row["problems"]) for kind in ("planted", "healthy") for row in results[kind])
    found = [row for row in results["planted"] if "sanitizer" in row]
    print("planted: %d of %d named; healthy: %d of %d left alone, %d differ at 16 bytes, %d by themselves; skipped: %d%s" % (
        sum(not row["problems"] for row in results["planted"]), len(results["planted"]),
        sum(not row["problems"] for row in results["healthy"]), len(results["healthy"]),
        sum(not row["same_at_16"] for row in results["healthy"]), sum(row["by_itself"] for row in results["healthy"]), skipped,
        "; compute-sanitizer found %d of %d" % (sum(bool(row["sanitizer"]) for row in found), len(found)) if found else ""))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as stream:
            json.dump(results, stream, indent=1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
