#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How cuwhy compares with what people use today: the same failing programs, one run under each tool. `make compare-gpu`.

    tests/gpu/compare.py [--build build] [--part programs|slowdown] [--minutes 20] [--artifacts DIR] [name…]

Tools: `plain`, PyTorch's own traceback; `blocking`, the same with CUDA_LAUNCH_BLOCKING=1; `sanitizer`, compute-sanitizer
(memcheck, default options), on faults; `core dump`, CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 with the flags that keep it small, opened
with cuda-gdb, on faults; `history`, PyTorch's memory history and a snapshot at the exception, on out-of-memory errors; `cuwhy`, cuwhy run.

The questions, decided by searching what was printed, without lines that repeat the program's source. Of a run under cuwhy only
its own words count, though the traceback and the driver's lines are there as well:

    line     yes: the place of the failure (the last traceback's innermost frame in the user's files; cuwhy's WHERE) is
             the guilty line, marked `<- here` in the program. Where memory ran out: the line that holds it, `<- culprit`, is named at
             all; for `history` it is the line whose live blocks hold the most bytes, added up here, since a snapshot has no words.
             call: the line that called backward or replayed the graph. inside: a line in the kernel's own source. other, none.
    kernel   the kernel's name, known beforehand
    thread   some block and thread;    address   some address that was accessed
    why      words that fit this cause only (PROGRAMS); PyTorch's hint about fragmentation, printed with every out-of-memory error, does not count

The slowdown is that of healthy work (compare_work.py) against plain, in the same round; the spread is that of the rounds. Nothing here
fails: a tool that is missing, hangs or runs out of time is reported in the table.
"""
import argparse
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../bench", "../e2e", "."):
    sys.path.insert(0, os.path.join(HERE, folder))
import compare_read  # noqa: E402
import harness  # noqa: E402
import run as gpu  # noqa: E402
import stats  # noqa: E402

OUTSIDE = r"past the end|after the nearest allocation|out of bounds|outside its memory"
INDEX = r"out of (range|bounds)|outside the dimension|is not a row"
# program; the questions for it; the kernel's name; words for why; the faulty line inside the kernel, if it is Python
PROGRAMS = (
    ("faults/oob_far", "line kernel thread address why", r"\bfill\b", OUTSIDE, None),
    ("faults/freed_torch", "line kernel thread address why", r"\bfill\b", r"\bfreed\b|use.after.free", None),
    ("faults/triton_store", "line kernel thread address why", r"\bput\b", OUTSIDE, "tl.store("),
    ("faults/assert_embedding", "line kernel thread why", r"vectorized_gather_kernel|indexSelect\w+Index", INDEX, None),
    ("faults/backward_gather", "line kernel thread why", r"scatter_gather_elementwise_kernel", INDEX, None),
    ("faults/graph_index", "line kernel thread why", r"vectorized_gather_kernel|indexSelect\w+Index", INDEX, None),
    ("faults/compile_index", "line kernel thread why", r"\btriton_\w+", INDEX, None),
    ("cases/grid_torch_pool", "line kernel why", r"fractional_max_pool2d_out_cuda_frame", r"65,?535", None),
    ("memory/fragmentation", "line why", None, r"fragment|gaps in", None),
    ("memory/graph_retention", "line why", None, r"graphs? of .* alive|(keep|kept|retain|hold)\w* .*\bgraph", None),
    ("memory/masked_cublas", "line why", None, r"out of memory|memory .*(exhausted|full)|ran out of memory", None),
)
TOOLS = ("plain", "blocking", "sanitizer", "core dump", "history", "cuwhy")
QUESTIONS = ("line", "kernel", "thread", "address", "why")
DUMP_FLAGS = ("skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
              "skip_constbank_memory")
WORDS = {"call": "line of the call", "inside": "line in the kernel", "other": "another line", "none": "no line"}


def find_tool(name):
    for place in (shutil.which(name), "/usr/local/cuda/bin/" + name):
        if place and os.access(place, os.X_OK):
            return place
    return None


def applies(tool, case):
    """Sanitizer and core dumps are for faults, the history is for out-of-memory errors."""
    kind = os.path.basename(os.path.dirname(case.path))
    return {"sanitizer": kind == "faults", "core dump": kind == "faults", "history": kind == "memory"}.get(tool, True)


class Compare:
    """Starts a program under each tool, within its own limit and the total time."""

    def __init__(self, args):
        self.python, self.cuwhy = args.python, os.path.join(os.path.abspath(args.build), "cuwhy")
        self.end, self.artifacts = time.monotonic() + 60 * args.minutes, args.artifacts
        self.sanitizer, self.gdb = find_tool("compute-sanitizer"), find_tool("cuda-gdb")

    def start(self, command, env, limit):
        """A finished run, or None when there is no time for one."""
        left = self.end - time.monotonic()
        return harness.Run(command, env, max(1, min(limit, left))) if left > 5 else None

    def missing(self, tool):
        if tool == "sanitizer" and not self.sanitizer:
            return "compute-sanitizer is not installed"
        if tool == "core dump" and not self.gdb:
            return "cuda-gdb is not installed"
        return None

    def command(self, tool, argv, env, folder):
        """The program under a tool; the environment is changed in place."""
        if tool == "blocking":
            env["CUDA_LAUNCH_BLOCKING"] = "1"
        elif tool == "core dump":
            env.update(CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_FILE=os.path.join(folder, "%p.cudacore"),
                       CUDA_COREDUMP_GENERATION_FLAGS=DUMP_FLAGS)
        elif tool == "sanitizer":
            return [self.sanitizer, "--launch-timeout", "0"] + argv
        elif tool == "history":
            return [self.python, os.path.join(HERE, "compare_history.py"), os.path.join(folder, "snap.pickle")] + argv[1:]
        elif tool.startswith("cuwhy"):
            return [self.cuwhy, "run"] + tool.split()[1:] + ["--out", os.path.join(folder, "recording"), "--"] + argv
        return argv

    def environment(self, more=()):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUWHY", "CUDA_LAUNCH", "CUDA_COREDUMP", "CUDA_ENABLE"))}
        env.update(PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1")
        env.update(more)
        return env

    def read_dump(self, folder):
        """What cuda-gdb prints when it opens the dump."""
        dumps = glob.glob(os.path.join(folder, "*.cudacore"))
        if not dumps:
            return "\n(no core dump was left)\n"
        run = self.start([self.gdb, "-batch", "-nx", "-ex", "target cudacore " + dumps[0], "-ex", "info cuda kernels"],
                         self.environment(), 120)
        return run.out + run.err if run else ""

    def one(self, tool, case, truth):
        """(answers, remark) of one program under one tool."""
        if not applies(tool, case):
            return None, "-"
        if self.missing(tool):
            return None, "skipped: " + self.missing(tool)
        with tempfile.TemporaryDirectory(prefix="cuwhy-compare-") as folder:
            env = self.environment(case.env)
            run = self.start(self.command(tool, [self.python, case.path], env, folder), env, 200 if tool == "sanitizer" else 100)
            if run is None:
                return None, "skipped: no time left"
            text = run.out + run.err + (self.read_dump(folder) if tool == "core dump" else "")
            heaviest, snapshot = None, os.path.join(folder, "snap.pickle")
            if os.path.exists(snapshot):
                heaviest = compare_read.heaviest_line(snapshot, truth.files)
                text += "\n(the line that holds most: %s)\n" % (heaviest,)
        self.keep(case, tool, text)
        remark = "stopped after %d s" % run.seconds if run.timed_out else "it did not fail" if run.status == 0 and tool == "plain" else ""
        return compare_read.answers(tool, text, truth, heaviest), remark

    def keep(self, case, tool, text):
        if self.artifacts:
            os.makedirs(self.artifacts, exist_ok=True)
            name = "%s.%s.txt" % (case.name, tool.replace(" ", "-"))
            with open(os.path.join(self.artifacts, name), "w", encoding="utf-8") as stream:
                stream.write(text[:400000])


# ---- failing programs ---------------------------------------------------------------------------------

def load(names, missing):
    """(case, truth) of the programs that can run here."""
    found = []
    for path, asked, kernel, why, inside in PROGRAMS:
        case = harness.Case(os.path.join(HERE, path + ".py"))
        absent = [need for need in case.needs if need in missing]
        if absent:
            print("# %s is left out: no %s" % (case.name, " ".join(absent)))
        elif not names or any(name in case.name for name in names):
            found.append((case, compare_read.Truth(case, asked, kernel, why, inside)))
    return found


def run_programs(compare, programs, jobs, results):
    """Slow tools first, side by side; programs that fill the card alone."""
    def one(task):
        case, truth, tool = task
        try:
            results[case.name, tool] = compare.one(tool, case, truth)
        except Exception as error:      # one broken run must not spoil the table
            results[case.name, tool] = None, "skipped: %s: %s" % (type(error).__name__, error)
        print("# %-18s %-10s %s" % (case.name, tool, cell(results[case.name, tool])), flush=True)

    tasks = [(case, truth, tool) for tool in sorted(TOOLS, key=lambda t: t != "sanitizer") for case, truth in programs]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [task for task in tasks if not task[0].alone]))
    for task in tasks:
        if task[0].alone:
            one(task)


def cell(result):
    found, remark = result
    if found is None:
        return remark
    line = found.get("line")
    words = ["line" if line == "yes" else WORDS[line]] + [q for q in QUESTIONS[1:] if found.get(q) == "yes"]
    return ", ".join(words) + (" (%s)" % remark if remark else "")


def print_programs(programs, results):
    print("\n## What each tool tells of each program\n")
    stats.table(("program",) + TOOLS, [(case.name,) + tuple(cell(results.get((case.name, tool), (None, "skipped: not reached")))
                                                            for tool in TOOLS) for case, _ in programs])
    print("## How often, of the programs that it was tried on\n")
    rows = []
    for tool in TOOLS:
        found = [results[case.name, tool][0] for case, _ in programs if results.get((case.name, tool), (None,))[0]]
        rows.append([tool] + [share(found, question) for question in QUESTIONS] + [len(found)])
    stats.table(("tool", "the guilty line", "kernel", "thread", "address", "why, in words", "programs"), rows)


def share(found, question):
    asked = [answer[question] for answer in found if question in answer]
    return "%d of %d" % (asked.count("yes"), len(asked)) if asked else "-"


# ---- slowdown of healthy work --------------------------------------------------------------------------

WORKERS = ("plain", "blocking", "core dump", "history", "cuwhy", "cuwhy --no-core-dump", "sanitizer")


def read_work(text):
    """{"launches": median seconds, …} of what compare_work.py printed before it ended or was stopped."""
    found = {}
    for line in text.splitlines():
        name, *times = line.split()[:99] or [""]
        if name in ("launches", "training") and times:
            found[name] = stats.median([float(t) for t in times])
    return found


def work_once(compare, tool):
    if tool == "sanitizer" and compare.missing(tool):
        return None
    with tempfile.TemporaryDirectory(prefix="cuwhy-compare-") as folder:
        env = compare.environment()
        argv = [compare.python, os.path.join(HERE, "compare_work.py")]
        run = compare.start(compare.command(tool, argv, env, folder), env, 150)
        if run is None:
            return None
        found = read_work(run.out)
        if not run.timed_out and run.status == 0:
            found["process"] = run.seconds
        elif not found:
            print("# %s: %s" % (tool, (run.out + run.err).strip()[-300:]), flush=True)
        return found


def run_slowdown(compare, rounds, times):
    """times[tool] gets one dictionary per round; the order is reversed every time. The slowest tool runs when the others are done."""
    swift = WORKERS[:-1]
    order = [(number, tool) for number in range(rounds) for tool in (swift if number % 2 == 0 else reversed(swift))]
    for number, tool in order + [(number, WORKERS[-1]) for number in range(rounds)]:
        found = work_once(compare, tool)
        times[tool].append(found or {})
        print("# round %d  %-20s %s" % (number + 1, tool, "skipped" if found is None else json.dumps(found)), flush=True)


def ratio(times, tool, name):
    """Median and range over the rounds of the time relative to plain in the same round."""
    ratios = [mine[name] / plain[name] for mine, plain in zip(times[tool], times["plain"]) if name in mine and name in plain]
    if not ratios:
        return "-"
    return "%.2f (%.2f to %.2f)" % (stats.median(ratios), min(ratios), max(ratios))


def print_slowdown(times):
    print("\n## Healthy work: time against plain, median and range of the rounds\n")
    rows = []
    for tool in WORKERS:
        processes = [t["process"] for t in times[tool] if "process" in t]
        whole = "%.1f s (%.1f to %.1f)" % (stats.median(processes), min(processes), max(processes)) if processes else "-"
        rows.append((tool, ratio(times, tool, "launches"), ratio(times, tool, "training"), whole, sum(bool(t) for t in times[tool])))
    stats.table(("tool", "2,000 launches", "10 small training steps", "the whole process", "rounds"), rows)
    plain = {name: [t[name] for t in times["plain"] if name in t] for name in ("launches", "training")}
    for name, values in plain.items():
        if values:
            print("plain %s: %.2f ms" % (name, 1000 * stats.median(values)))


# ---- the machine ---------------------------------------------------------------------------------------

VERSIONS = """
import importlib, sys
for name in ("torch", "cupy", "triton"):
    try:
        print(name, importlib.import_module(name).__version__, end=", ")
    except Exception:
        pass
print("Python", sys.version.split()[0])
"""


def first_line(*command):
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = [line.strip() for line in run.stdout.splitlines() if re.search(r"\d\.\d", line)]
    return lines[0] if lines else "unknown"


def machine(compare):
    print("%s; %s; %d cores" % (first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
                                stats.processor(), os.cpu_count() or 0))
    print(first_line(compare.python, "-c", VERSIONS))
    print("; ".join([first_line(compare.cuwhy, "--version")] +
                    ["%s %s" % (os.path.basename(t), first_line(t, "--version")) for t in (compare.sanitizer, compare.gdb) if t]))


def arguments():
    parser = argparse.ArgumentParser(description="cuwhy beside the tools that people use today, on a real GPU")
    parser.add_argument("names", nargs="*", help="only programs whose name contains one of these")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--part", choices=("programs", "slowdown"), help="only one of the parts")
    parser.add_argument("--minutes", type=float, default=20, help="what is not done by then is left out, aloud")
    parser.add_argument("--rounds", type=int, default=3, help="of the slowdown")
    parser.add_argument("-j", type=int, default=min(3, os.cpu_count() or 1), dest="jobs", help="failing programs at a time")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--artifacts", help="leave what was printed in this folder")
    return parser.parse_args()


def main():
    args = arguments()
    missing = gpu.what_is_missing(args.python)
    if missing & {"GPU", "torch"}:
        print("compare-gpu: skipped, no GPU or no PyTorch here")
        return 0
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))     # a GPU core dump ends in abort()
    compare = Compare(args)
    machine(compare)
    programs, results, times = load(args.names, missing), {}, {tool: [] for tool in WORKERS}
    try:
        if args.part != "slowdown":
            run_programs(compare, programs, args.jobs, results)
        if args.part != "programs":
            run_slowdown(compare, args.rounds, times)
    except KeyboardInterrupt:
        print("# stopped: what follows is not complete")
    if args.part != "slowdown":
        print_programs(programs, results)
    if args.part != "programs":
        print_slowdown(times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
