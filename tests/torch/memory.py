#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on programs that run out of memory, against what is true of them by construction.

    tests/torch/memory.py --seed 300 --count 60                  generated programs, real PyTorch on the simulated GPU
    tests/torch/memory.py --strangers [name…]                    those of memory_strangers, which people wrote
    tests/torch/memory.py --variants --seed 300 --count 2 [story…]   programs whose variants deserve the same answer (memory_variants.py)
    tests/torch/memory.py --real --seed 300 --count 60           on this machine's GPU, with sizes for it

--torch: a version to install as tests/torch/check.py does it, a folder that has PyTorch, or `installed`: the one that python3 finds.
Prints a line per program and a table of labels and verdicts. Exits with 1 if a wrong verdict is certain, with 2 if a program did not
do what its label says, which is the generator's fault.
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check  # noqa: E402
import memory_programs  # noqa: E402
import memory_variants  # noqa: E402
from memory_mistakes import CAPACITY, TOO_LARGE  # noqa: E402

LIMIT = 120         # seconds a program, for each of those that share a GPU
SAMPLE = (6006, 6024, 6027, 6029, 6030, 6031, 9012, 9021, 9027, 12006, 12036)
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
TRIED = re.compile(r"Tried to allocate ([\d.]+) (%s)" % "|".join(UNITS))
FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in ')
LABEL = re.compile(r"^# label:\s*(.*)$", re.M)
NO_MEMORY = re.compile("out of memory|ALLOC_FAILED")
NUMBER = re.compile(r"\b\d+\b")
WRITTEN_FOR = 11.76 * (1 << 30)     # the card that the sizes in memory_strangers are for
FREE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, free, total = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print(free.value)
"""
# A sitecustomize for a real GPU: programs load PyTorch side by side, which takes most of their time, and have the card one at a time.
# The one before has given its memory back when it is gone or a zombie; its lock is free a little earlier.
ONE_AT_A_TIME = """
import fcntl, importlib.util, os, sys, time

class Turn:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def load_and_wait(module):
            load(module)
            self.wait()
        spec.loader.exec_module = load_and_wait
        return spec

    def wait(self):
        self.file = open(os.environ.pop("CUWHY_TEST_TURN"), "a+")       # the processes that it starts do not wait
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.seek(0)
        before = self.file.read().split()
        while before and self.lives(before[-1]):
            time.sleep(0.05)
        self.file.write("%d\\n" % os.getpid())
        self.file.flush()

    @staticmethod
    def lives(pid):
        try:
            with open("/proc/%s/stat" % pid) as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

if "CUWHY_TEST_TURN" in os.environ:
    turn = Turn()
    sys.meta_path.insert(0, turn)
"""


# --- programs ----------------------------------------------------------------------------------


def stranger(path, memory):
    """A program of memory_strangers. `# label: cause… [certain=cause…] [asked]` is what is true of it, `#@here` marks the acceptable
    lines, and the last number of a line with `#@scale` is a size for WRITTEN_FOR."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    words = LABEL.search(text).group(1).split()
    lines = []
    for line in text.splitlines():
        if "#@scale" in line:
            number = list(NUMBER.finditer(line.split("#@")[0]))[-1]
            line = line[:number.start()] + str(max(1, int(int(number.group()) * memory / WRITTEN_FOR))) + line[number.end():]
        lines.append("#" if LABEL.match(line) else line)
    name = os.path.basename(path)
    clean, marks = memory_programs.marked({name: "\n".join(lines)})
    causes = [w for w in words if "=" not in w and w not in ("asked", "none")]
    certain = [c for w in words if w.startswith("certain=") for c in w[8:].split(",")]
    label = memory_programs.Label(causes, certain or None, marks.get("here", ()), "asked" in words, marks.get("forward", ()))
    return memory_programs.Program(os.path.splitext(name)[0], clean, label)


def strangers(names, memory):
    folder = os.path.join(HERE, "memory_strangers")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") and (not names or any(n in name for n in names)):
            yield stranger(os.path.join(folder, name), memory)


# --- one run -----------------------------------------------------------------------------------


def one_at_a_time(env, folder):
    """Programs with this environment load PyTorch side by side and have the card in turns."""
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(ONE_AT_A_TIME)
    env["PYTHONPATH"] = os.pathsep.join([folder] + [p for p in [env.get("PYTHONPATH")] if p])
    env["CUWHY_TEST_TURN"] = os.path.join(folder, "turn")


class Runner:
    def __init__(self, args, folder):
        self.cuwhy = os.path.abspath(os.path.join(args.build, "cuwhy"))
        self.gpu = [] if args.real else ["--gpu", args.gpu]
        self.env = dict(os.environ, PYTHONPATH=folder) if folder else dict(os.environ)
        self.keep, self.limit = args.keep, LIMIT * (args.jobs if args.real else 1)

    def start(self, options, words, cwd=None, gpu=None):
        return subprocess.run([self.cuwhy, "run", *(["--gpu", gpu] if gpu else self.gpu), *options, "--", sys.executable, *words], env=self.env, cwd=cwd, timeout=self.limit,
                              capture_output=True, text=True, errors="replace", check=False)

    def free(self, gpu=None):
        """Bytes of the card that a program can have."""
        done = self.start([], ["-c", FREE], gpu=gpu)
        if done.returncode:
            sys.exit("memory: cannot ask the GPU: " + done.stderr.strip())
        return int(done.stdout.split()[-1])

    def run(self, program):
        folder = tempfile.mkdtemp(prefix="cuwhy-memory-")
        try:
            for name, text in program.files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            began = time.monotonic()
            try:
                done = self.start(["--json", "--out", os.path.join(folder, "out")], [program.main, *program.arguments], folder, program.gpu)
            except subprocess.TimeoutExpired:
                return Result(program, folder, None, "", {}, time.monotonic() - began)
            found = [line for line in done.stderr.splitlines() if line.startswith('{"schema"')]
            verdict = json.loads(found[-1]) if found else {}
            result = Result(program, folder, done.returncode, done.stderr, verdict, time.monotonic() - began)
            if self.keep and not result.right:
                self.save(result, folder)
            return result
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def save(self, result, folder):
        place = os.path.join(self.keep, result.program.name)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for name in result.program.files:
            shutil.copy(os.path.join(folder, name), place)
        text = subprocess.run([self.cuwhy, "explain", "-v", os.path.join(folder, "out")], capture_output=True, text=True, check=False)
        with open(os.path.join(place, "verdict.json"), "w", encoding="utf-8") as file:
            json.dump(result.verdict, file, indent=1)
        with open(os.path.join(place, "verdict.txt"), "w", encoding="utf-8") as file:
            file.write("%s\nlabel: %s\n\n%s%s\n--- stderr\n%s\n" % (result.line(), vars(result.program.label), text.stdout, text.stderr,
                       "\n".join(line[:2000] for line in result.stderr.splitlines() if not line.startswith("{"))))


class Result:
    """One program's verdict beside its label."""

    def __init__(self, program, folder, status, stderr, verdict, seconds):
        self.program, self.status, self.stderr, self.verdict, self.seconds = program, status, stderr, verdict, seconds
        label, self.causes, self.certain = program.label, list(program.label.causes), list(program.label.certain)
        self.cause, self.certainty = verdict.get("cause", "no verdict"), verdict.get("certainty", "")
        tried = [float(number) * UNITS[unit] for number, unit in TRIED.findall(stderr)]
        total = (verdict.get("memory") or {}).get("total") or 0
        if self.causes == [CAPACITY] and total and tried and tried[-1] > total:
            self.causes = self.certain = [TOO_LARGE]       # that one request alone is larger than the card is what the user must know
        ended_well = status == 0
        self.broken = self.why_broken(label, ended_well, stderr)
        self.cause_right = self.cause in self.causes if self.causes else self.cause == "none"
        where = verdict.get("where") or {}
        self.where = "%s:%s" % (os.path.basename(where["file"]), where["line"]) if where.get("file") else "-"
        good = self.good_lines(label, stderr, folder)
        self.line_right = not self.causes or self.where in good
        said = " ".join(verdict.get("why") or ())
        self.named = self.line_right or any(re.search(r"\b%s\b" % re.escape(line), said) for line in good)
        self.wrong_certain = self.certainty == "certain" and self.cause not in (self.certain if self.causes else ["none"])
        self.right = not self.broken and self.cause_right and self.line_right and not self.wrong_certain

    @staticmethod
    def why_broken(label, ended_well, stderr):
        if not label.causes:
            return "" if ended_well else "failed, and should not"
        if ended_well:
            return "did not fail"
        return "" if NO_MEMORY.search(stderr) else "failed otherwise"

    @staticmethod
    def good_lines(label, stderr, folder):
        """The acceptable lines. Those that asked are the program's own in its last traceback."""
        good = set(label.lines)
        if label.asked:
            last = stderr.rsplit("Traceback (most recent call last)", 1)[-1]
            frames = [m.groups() for m in map(FRAME.match, last.splitlines()) if m]
            own = ["%s:%s" % (os.path.basename(file), line) for file, line in frames if os.path.realpath(file).startswith(os.path.realpath(folder))]
            good.update(own)
            if "backward" in last:
                good.update(label.forward)
        return good

    def line(self):
        if self.broken:
            what = "BROKEN " + self.broken
        else:
            what = "ok    " if self.right else "WRONG "
            what += "certain " if self.wrong_certain else ""
        return "%-8s %-62s %s %s%s; %s%s  %.0f s" % (what, self.program.name, self.cause, self.certainty,
               "" if self.cause_right else " (label %s)" % ", ".join(self.causes or ["none"]), self.where,
               "" if self.line_right else " (named in WHY)" if self.named else " (not %s)" % (", ".join(self.program.label.lines[:4]) or "the line that asked"),
               self.seconds)

    def record(self):
        return {"program": self.program.name, "causes": self.causes, "cause": self.cause, "certainty": self.certainty, "cause_right": self.cause_right,
                "where": self.where, "line_right": self.line_right, "line_named": self.named, "wrong_certain": self.wrong_certain,
                "broken": self.broken, "seconds": round(self.seconds, 1)}


# --- all of them --------------------------------------------------------------------------------


def short(cause):
    return cause.replace("oom-", "")


def percent(part, whole):
    return "%d of %d (%.1f %%)" % (part, whole, 100 * part / whole if whole else 100)


def table(results):
    """Labels down, verdicts across. A label of several causes is the first of them; its verdict is that one if it is right."""
    seen = collections.Counter()
    for r in results:
        label = (r.causes or ["none"])[0]
        seen[label, label if r.cause_right else r.cause] += 1
    rows = sorted({label for label, _ in seen})
    columns = rows + sorted({got for _, got in seen} - set(rows))
    width = max(len(short(name)) for name in columns) + 1
    print("\n" + "label \\ verdict".ljust(width + 6), " ".join("%4s" % ("(%d)" % i) for i in range(1, len(columns) + 1)))
    for i, row in enumerate(columns, 1):
        print(("(%d) %s" % (i, short(row))).ljust(width + 6), " ".join("%4s" % (seen[row, column] or ".") for column in columns))


def same_answers(results):
    """How many programs get one answer in all of their variants."""
    answers = {}
    for r in results:
        if r.program.story and not r.broken:
            answers.setdefault(r.program.story, collections.Counter())[r.cause] += 1
    for name, causes in answers.items():
        if len(causes) > 1:
            print("%-28s %s" % (name, ", ".join("%s %d" % (short(cause), n) for cause, n in causes.most_common())))
    if answers:
        print("same answer      " + percent(sum(len(causes) == 1 for causes in answers.values()), len(answers)))


def summary(results):
    sound = [r for r in results if not r.broken]
    failing = [r for r in sound if r.causes]
    likely = [r for r in sound if r.certainty == "likely"]
    certain = [r for r in sound if r.wrong_certain]
    if sound:
        table(sound)
    print("\ncause right      " + percent(sum(r.cause_right for r in sound), len(sound)))
    print("line right       " + percent(sum(r.line_right for r in failing), len(failing)))
    print("line named       " + percent(sum(r.named for r in failing), len(failing)))
    print("certain wrong    " + percent(len(certain), sum(r.certainty == "certain" for r in sound)))
    print("likely wrong     " + percent(sum(not r.cause_right for r in likely), len(likely)))
    same_answers(sound)
    broken = len(results) - len(sound)
    if broken:
        print("%d programs did not do what their labels say" % broken)
    return 1 if certain else 2 if broken else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", default="2.11.0", help="version, folder or `installed` (default: %(default)s)")
    parser.add_argument("--gpu", default="sim:rtx3060", help="the simulated GPU (default: %(default)s)")
    parser.add_argument("--real", action="store_true", help="the GPU of this machine instead")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--step", type=int, default=1, help="between seeds; 3: without the near misses")
    parser.add_argument("--sample", action="store_true", help="the seeds that `make check-torch` runs")
    parser.add_argument("--only", help="programs with this mistake")
    parser.add_argument("--strangers", action="store_true", help="the programs of memory_strangers instead of generated ones")
    parser.add_argument("--variants", action="store_true", help="five variants of each program of memory_variants")
    parser.add_argument("--list", action="store_true", help="print the programs and their labels, and run nothing")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, dest="jobs")
    parser.add_argument("--json", help="write a line of JSON per program to this file")
    parser.add_argument("--keep", help="leave programs with wrong verdicts, and these, in this folder")
    parser.add_argument("names", nargs="*", help="with --strangers, --variants: only those whose name contains one of these")
    return parser.parse_args()


def pytorch(wanted):
    """The folder for PYTHONPATH, None for PyTorch that is installed; and the reason if there is none."""
    if wanted == "installed":
        return None, None
    if os.path.isdir(wanted):
        return os.path.abspath(wanted), None
    return check.install(wanted)


def main():
    args = arguments()
    folder, why = pytorch(args.torch)
    if why:
        print("memory: SKIPPED: PyTorch %s cannot be installed: %s" % (args.torch, why))
        return 0
    runner = Runner(args, folder)
    memory = runner.free()
    if args.strangers:
        programs = list(strangers(args.names, memory))
    elif args.variants:
        memory_of = functools.lru_cache(maxsize=None)(lambda card: runner.free("sim:" + card))
        programs = [program for name in memory_variants.STORIES if not args.names or any(n in name for n in args.names)
                    for seed in range(args.seed, args.seed + args.count) for program in memory_variants.variants(name, seed, memory_of)]
    else:
        seeds = SAMPLE if args.sample else range(args.seed, args.seed + args.count * args.step, args.step)
        programs = [memory_programs.generate(seed, memory, args.only) for seed in seeds]
    if args.list:
        for program in programs:
            print("%-62s %s" % (program.name, ", ".join(program.label.causes or ["none"])))
        return 0
    waiting = tempfile.TemporaryDirectory(prefix="cuwhy-turns-")
    if args.real:
        one_at_a_time(runner.env, waiting.name)
    results, out = [], open(args.json, "w", encoding="utf-8") if args.json else None
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            for result in pool.map(runner.run, programs):
                print(result.line(), flush=True)
                results.append(result)
                if out:
                    out.write(json.dumps(result.record()) + "\n")
                    out.flush()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("stopped after %d of %d" % (len(results), len(programs)))
    return summary(results)


if __name__ == "__main__":
    sys.exit(main())
