#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same failure, told by a recording and by PyTorch's own memory snapshot: both must get the same answer.

    tests/torch/memory_snapshots.py --seed 300 --count 60            generated programs, real PyTorch on the simulated GPU
    tests/torch/memory_snapshots.py --seed 300 --count 60 --keep DIR and keep what they left, to judge it again
    tests/torch/memory_snapshots.py --again DIR                      judges it again, runs nothing

Each program of memory_programs.py that fails runs once, with the history of PyTorch's allocator on; its snapshot is written when memory
runs out, as PyTorch's documentation does it. A snapshot knows less than a recording: its answer may be less sure. It must never be another one
that is as sure. Prints a line per program and a table of both answers. Exits with 1 if a snapshot contradicts its recording, or is certain
and wrong.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import memory  # noqa: E402
import memory_programs  # noqa: E402

# A sitecustomize: the history of the allocator from the import on, and a snapshot at each failure, of which the last one stays.
RECORD = """
import importlib.util, os, sys

def record(torch):
    def dump(device, asked, held, free):
        torch.cuda.memory._dump_snapshot(os.environ["CUWHY_TEST_SNAPSHOT"])
    torch.cuda.memory._record_memory_history(stacks="python")
    torch._C._cuda_attach_out_of_memory_observer(dump)

class Recorded:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def load_and_record(module):
            load(module)
            record(module)
        spec.loader.exec_module = load_and_record
        return spec

if "CUWHY_TEST_SNAPSHOT" in os.environ:
    sys.meta_path.insert(0, Recorded())
"""
SAMPLE = (1008, 1030, 1068, 1110, 7326, 7386)       # graphs, growth, a first turn with gaps; each was answered otherwise once
SURE = ("possible", "likely", "certain")


class Pair:
    """The answers to one failure."""

    def __init__(self, name, label, recording, snapshot):
        self.name, self.label = name, label
        self.recording, self.snapshot = recording, snapshot
        self.cause, self.sure = snapshot.get("cause", "no verdict"), snapshot.get("certainty") or ""
        self.told, self.told_sure = recording.get("cause", "no verdict"), recording.get("certainty") or ""
        self.line, self.told_line = self.where(snapshot), self.where(recording)
        self.same_cause, self.same_line = self.cause == self.told, self.line == self.told_line
        self.both_true = self.cause in label["causes"] and self.told in label["causes"]     # a program may have two faults
        rank = lambda sure: SURE.index(sure) if sure in SURE else -1      # noqa: E731
        self.contradicts = not self.same_cause and not self.both_true and rank(self.sure) >= rank(self.told_sure) and rank(self.sure) > 0
        self.surer = self.same_cause and rank(self.sure) > rank(self.told_sure)
        self.right = self.cause in label["causes"]
        self.wrong_certain = self.sure == "certain" and self.cause not in label["certain"]

    @staticmethod
    def where(verdict):
        where = verdict.get("where") or {}
        return "%s:%s" % (os.path.basename(where["file"]), where["line"]) if where.get("file") else "-"

    def text(self):
        what = "CONTRADICTS" if self.contradicts else "WRONG" if self.wrong_certain else "same" if self.same_cause and self.same_line else \
            "other line" if self.same_cause else "less sure"
        return "%-11s %-52s %s %s %s | snapshot %s %s %s%s" % (what, self.name, memory.short(self.told), self.told_sure, self.told_line,
               memory.short(self.cause), self.sure, self.line, "" if self.right else " (label %s)" % ", ".join(memory.short(c) for c in self.label["causes"]))


def explain(cuwhy, path):
    done = subprocess.run([cuwhy, "explain", "--json", path], capture_output=True, text=True, errors="replace", check=False, timeout=300)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"cause": "no verdict: " + done.stderr.strip()[:80]}


class Runner(memory.Runner):
    """Runs a program once; what it leaves lies in `place`, a folder for each."""

    def __init__(self, args, folder, place):
        super().__init__(args, folder)
        self.place = place
        self.hook = os.path.join(place, ".hook")
        os.makedirs(self.hook, exist_ok=True)
        with open(os.path.join(self.hook, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(RECORD)
        self.env["PYTHONPATH"] = os.pathsep.join([self.hook] + [p for p in [self.env.get("PYTHONPATH")] if p])

    def leave(self, program):
        folder = os.path.join(self.place, program.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name, text in program.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        label = {"causes": program.label.causes, "certain": program.label.certain, "lines": program.label.lines}
        with open(os.path.join(folder, "label.json"), "w", encoding="utf-8") as file:
            json.dump(label, file)
        env = dict(self.env, CUWHY_TEST_SNAPSHOT=os.path.join(folder, "snapshot.pickle"))
        try:
            subprocess.run([self.cuwhy, "run", *self.gpu, "--writes", "real", "--json", "--out", os.path.join(folder, "out"), "--", sys.executable, program.main,
                            *program.arguments], env=env, cwd=folder, timeout=self.limit, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            pass
        return folder


def judge(cuwhy, folder):
    """None: the program did not run out of PyTorch's memory, which leaves no snapshot."""
    snapshot = os.path.join(folder, "snapshot.pickle")
    if not os.path.exists(snapshot):
        return None
    with open(os.path.join(folder, "label.json"), encoding="utf-8") as file:
        label = json.load(file)
    return Pair(os.path.basename(folder), label, explain(cuwhy, os.path.join(folder, "out")), explain(cuwhy, snapshot))


def table(pairs):
    """Answers from recordings down, from snapshots across."""
    seen = collections.Counter((p.told, p.cause) for p in pairs)
    rows = sorted({told for told, _ in seen})
    columns = rows + sorted({cause for _, cause in seen} - set(rows))
    width = max(len(memory.short(name)) for name in columns) + 6
    print("\n" + "recording \\ snapshot".ljust(max(width, 22)), " ".join("%4s" % ("(%d)" % i) for i in range(1, len(columns) + 1)))
    for i, row in enumerate(columns, 1):
        print(("(%d) %s" % (i, memory.short(row))).ljust(max(width, 22)), " ".join("%4s" % (seen[row, column] or ".") for column in columns))


def summary(pairs):
    if pairs:
        table(pairs)
    n = len(pairs)
    print("\nsame cause          " + memory.percent(sum(p.same_cause for p in pairs), n))
    print("same line           " + memory.percent(sum(p.same_line for p in pairs), n))
    print("cause right         " + memory.percent(sum(p.right for p in pairs), n))
    print("contradictions      " + memory.percent(sum(p.contradicts for p in pairs), n))
    print("surer than it       " + memory.percent(sum(p.surer for p in pairs), n))
    print("certain and wrong   " + memory.percent(sum(p.wrong_certain for p in pairs), n))
    return 1 if any(p.contradicts or p.wrong_certain for p in pairs) else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", default="2.11.0", help="version, folder or `installed` (default: %(default)s)")
    parser.add_argument("--gpu", default="sim:rtx3060", help="the simulated GPU (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--sample", action="store_true", help="the seeds that `make check-torch` runs")
    parser.add_argument("--only", help="programs with this mistake")
    parser.add_argument("--keep", help="leave recordings and snapshots in this folder")
    parser.add_argument("--again", help="a folder of --keep: judge what is there")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, dest="jobs")
    args = parser.parse_args()
    args.real = False
    return args


def failing(args, room):
    """Seeds 3n+2 are small enough: there is nothing to compare."""
    for seed in SAMPLE if args.sample else range(args.seed, args.seed + args.count):
        if seed % 3 != 2:
            yield memory_programs.generate(seed, room, args.only)


def run_all(args, place):
    folder, why = memory.pytorch(args.torch)
    if why:
        sys.exit(print("memory_snapshots: SKIPPED: PyTorch %s cannot be installed: %s" % (args.torch, why)) or 0)
    runner = Runner(args, folder, place)
    programs = list(failing(args, runner.free()))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for folder in pool.map(runner.leave, programs):
            yield folder


def main():
    args = arguments()
    cuwhy = os.path.abspath(os.path.join(args.build, "cuwhy"))
    args.keep = args.keep and os.path.abspath(args.keep)
    pairs, without = [], 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-snapshots-") as place:
        if args.again:
            folders = sorted(os.path.join(args.again, name) for name in os.listdir(args.again) if not name.startswith("."))
        else:
            folders = run_all(args, args.keep or place)
        for folder in folders:
            pair = judge(cuwhy, folder)
            without += pair is None
            if pair:
                print(pair.text(), flush=True)
                pairs.append(pair)
            if not args.again and not args.keep:
                shutil.rmtree(folder, ignore_errors=True)
    print("%d failures, %d programs without a snapshot" % (len(pairs), without))
    return summary(pairs)


if __name__ == "__main__":
    sys.exit(main())
