#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that run out of memory, each with another kind of object that keeps it: is the path to that object right?

    tests/torch/holders.py [--build build] [--torch 2.11.0] [name…]

The first lines of a program of tests/torch/holders say which paths are true of it: "keeps" was written before any was tried, "also" is another
name for the same object, or a finer one, that came out and is true, too. "gone": nothing is left to be found when the exception ends the program.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check  # noqa: E402


def truths(path):
    with open(path, encoding="utf-8") as f:
        heads = [line[2:].rstrip("\n").partition(": ") for line in f if line.startswith("# ")]
    return [what for head, _, what in heads if head in ("keeps", "also")]


def judged(cuwhy, path, env):
    run = subprocess.run([cuwhy, "run", "--json", "--gpu", "sim:rtx4090", "--", sys.executable, path], env=env, capture_output=True, text=True,
                         timeout=600)
    at = run.stderr.find('{"schema"')
    return json.loads(run.stderr[at:run.stderr.rindex("}") + 1]) if at >= 0 else None


def answer(verdict):
    """Paths with their bytes, the largest first; what the verdict itself says in words."""
    memory = (verdict or {}).get("memory") or {}
    said = [why for why in (verdict or {}).get("why", ()) if why.startswith("`")]
    return [(h["path"], h["bytes"], h.get("graph_bytes")) for h in memory.get("holders") or []], memory.get("unheld"), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch", default="2.11.0")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    folder, why = check.install(args.torch)
    if not folder:
        print("holders: SKIPPED: PyTorch %s cannot be installed: %s" % (args.torch, why))
        return 0
    env = dict(os.environ, PYTHONPATH=folder)
    counts = {"right": 0, "wrong": 0, "none": 0}
    for path in sorted(glob.glob(os.path.join(HERE, "holders", "*.py"))):
        name = os.path.basename(path)[:-3]
        if args.names and not any(n in name for n in args.names):
            continue
        found, unheld, said = answer(judged(os.path.abspath(os.path.join(args.build, "cuwhy")), path, env))
        what = "none" if not found else "right" if found[0][0] in truths(path) else "wrong"
        counts[what] += 1
        print("%-6s %-22s %s" % (what, name, "; ".join("%s %.1f GiB" % (p, b / 2**30) for p, b, _ in found)), flush=True)
        if what != "right":
            print("       no object: %s\n       said: %s" % (json.dumps(unheld), said))
    print("holders: %(right)d right, %(wrong)d wrong, %(none)d not told" % counts)
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
