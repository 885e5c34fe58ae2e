#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots that the installed PyTorch writes on a real GPU: are they read and analyzed correctly?

    tests/gpu/snapshots.py [--build build] [--keep DIR]

Each program runs out of memory with PyTorch's history on, writes a snapshot and ends; cuwhy sees only the file. Then the same
in a block of the Python package's `watch(memory_history=True)`, which takes the snapshot itself.
Without a GPU or PyTorch everything is skipped, with a message.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
FRAME = """
import sys, torch
import torch.nn as nn
torch.cuda.memory._record_memory_history(max_entries=100000)
GIB, MIB = 1 << 30, 1 << 20
free, total = torch.cuda.mem_get_info()

empty = lambda n: dict(size=(n,), dtype=torch.uint8, device="cuda")

%s

try:
    work()
except torch.OutOfMemoryError:
    torch.cuda.memory._dump_snapshot(sys.argv[1])
    print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
"""
WATCHED = FRAME.replace("torch.cuda.memory._record_memory_history(max_entries=100000)\n", "import cuwhy, json\n").replace(
    "    work()\n", "    with cuwhy.watch(memory_history=True, quiet=True) as w:\n        work()\n").split("    torch.cuda.memory._dump")[0] + """
    v = w.verdict
    print(json.dumps([v.cause, v.certainty, [h["line"] for h in v.collected["lines"]], v.collected["oom"]]))
"""
# name, program, causes that may come first (a snapshot has neither the size of the card nor a limit), line that must be named
PROGRAMS = (
    ("growth", """
kept = []
def work():
    for step in range(100000):
        scratch = [torch.empty(**empty(256 * MIB)) for _ in range(8)]
        kept.append(torch.empty(**empty(256 * MIB)))  # culprit
        del scratch
""", ("oom-growth",)),
    ("list", """
kept = []
def work():
    x = torch.ones(GIB, device="cuda")
    while True:
        kept.append((x * 2).relu())  # culprit
""", ("oom-growth",)),
    ("fragmentation", """
def work():
    pieces = []
    for _ in range(int(free * 0.97) // (20 * MIB)):
        pieces += [torch.empty(**empty(9 * MIB)) for _ in range(2)]  # culprit
    del pieces[::2]
    torch.empty(**empty(8 * GIB))
""", ("oom-fragmentation",)),
    ("capacity", """
layers = nn.ModuleList(nn.Linear(4096, 4096) for _ in range(8)).cuda()
def work():
    for rows in (1024, 2048, 1 << 22):
        x = torch.randn(rows, 4096, device="cuda")
        for layer in layers:
            x = torch.relu(layer(x))
        x.sum().backward()
""", ("oom-capacity",)),
    ("single_request", """
def work():
    small = torch.empty(**empty(MIB))
    torch.empty(**empty(1024 * GIB))  # culprit
""", ("oom-request-too-large", "oom-capacity", "oom-other-process")),
)


def judge(args, name, program, causes, folder):
    path, source = os.path.join(folder, name + ".pickle"), os.path.join(folder, name + ".py")
    with open(source, "w", encoding="utf-8") as out:
        out.write(FRAME % program)
    run = subprocess.run([args.python, source, path], capture_output=True, text=True, timeout=300)
    if run.returncode or not os.path.exists(path):
        return False, "no snapshot: " + run.stderr.strip()[-300:]
    allocated, reserved = map(int, run.stdout.split())
    cuwhy = os.path.join(args.build, "cuwhy")
    shown = subprocess.run([cuwhy, "explain", "--json", path], capture_output=True, text=True)
    verdict = json.loads(shown.stdout)
    device = json.loads(subprocess.run([cuwhy, "memory", "--json", path], capture_output=True, text=True).stdout)["devices"][0]
    with open(source, encoding="utf-8") as lines:
        culprit = [number for number, line in enumerate(lines, 1) if "# culprit" in line]
    named = not culprit or any(":%d" % culprit[0] in text for text in verdict.get("why", [])) \
        or (verdict.get("where") or {}).get("line") == culprit[0]
    same = device.get("allocated") == allocated and device.get("reserved") == reserved
    ok = verdict["cause"] in causes and named and same
    return ok, "%s, %s; line %s; allocated and reserved %s (%.1f, %.1f GiB); file of %.1f MiB" % (
        verdict["cause"], verdict["certainty"], "named" if named else "NOT named", "equal" if same else
        "differ: %s %s" % (device.get("allocated"), device.get("reserved")), allocated / 2**30, reserved / 2**30,
        os.path.getsize(path) / 2**20)


def judge_watched(args, name, program, causes, folder):
    source = os.path.join(folder, name + "_watched.py")
    with open(source, "w", encoding="utf-8") as out:
        out.write(WATCHED % program)
    env = dict(os.environ, CUWHY_PROGRAM=os.path.abspath(os.path.join(args.build, "cuwhy")), PYTHONPATH=PACKAGE)
    run = subprocess.run([args.python, source], capture_output=True, text=True, timeout=300, env=env)
    if run.returncode or not run.stdout.strip():
        return False, "no verdict: " + run.stderr.strip()[-300:]
    cause, sure, lines, oom = json.loads(run.stdout.splitlines()[-1])
    with open(source, encoding="utf-8") as text:
        culprit = [number for number, line in enumerate(text, 1) if "# culprit" in line and not name.startswith("single")]
    named = not culprit or culprit[0] in lines
    return cause in causes and named and oom is not None, "watched: %s, %s; line %s; the card %s" % (
        cause, sure, "named" if named else "NOT named: %s" % lines, oom)


def main():
    parser = argparse.ArgumentParser(description="snapshots of the installed PyTorch")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--keep", help="leave the snapshots in this folder")
    args = parser.parse_args()
    if subprocess.run([args.python, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True).returncode:
        print("skipped: no GPU or no PyTorch here")
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-snapshots-") as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        for name, program, causes in PROGRAMS:
            for look in (judge, judge_watched):
                ok, text = look(args, name, program, causes, folder)
                wrong += not ok
                print("%s %-16s %s" % ("ok    " if ok else "not ok", name, text), flush=True)
    print("%d right, %d wrong" % (2 * len(PROGRAMS) - wrong, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
