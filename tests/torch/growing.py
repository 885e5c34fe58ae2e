#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do programs that leak get their last step from `cuwhy fit`, and are those that settle late left alone?

    tests/torch/growing.py [--build build] [--torch FOLDER] [--gpu rtx4060] [--steps N] [--verdict] FOLDER|FILE ...

Files named leak* never stop growing and print "failed in step N" when memory runs out; those named settle* rise for some steps, and are flat then.
The truth about a leaking one is a dry run on the card itself. Without --torch, the wheel of check.py. --steps ends leaking ones early, so that
the step must be predicted.

--verdict asks the verdicts of `cuwhy run` instead: the iteration in which memory ran out is known there, and the one in which a larger card would be full
is predicted. A program that counts its steps otherwise than the loop does (several loops, parts of a batch) counts right on both cards or on none: what must
agree is by how much longer it runs.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

NEAR = 0.05
PATIENCE = 900      # seconds for a program


def programs(words):
    for word in words:
        yield from sorted(glob.glob(os.path.join(word, "*.py"))) if os.path.isdir(word) else [word]


def cuwhy(options, words):
    env = dict(os.environ, PYTHONPATH=options.torch)
    return subprocess.run([os.path.join(options.build, "cuwhy"), *words], env=env, capture_output=True, text=True, check=False, timeout=PATIENCE)


def fit(options, program, steps=None):
    done = cuwhy(options, ["fit", "--json", "--no-remedies", "--gpu", options.gpu, *(["--steps", steps] if steps else []), "--", sys.executable, program])
    return done.returncode, json.loads(done.stdout)


def fails_at(options, program, gpu=None, out=None):
    """In which step, in truth; None: it printed something else."""
    done = cuwhy(options, ["run", *(["--out", out] if out else []), "--gpu", "sim:" + (gpu or options.gpu), "--", sys.executable, program])
    words = done.stdout.split("failed in step ")
    return int(words[1].split()[0]) if len(words) == 2 else None


def judge_leak(options, program):
    """(right, what is said)"""
    status, found = fit(options, program, options.steps)
    if "cards" not in found:
        return False, "no answer: %s" % found.get("failure")
    card, truth = found["cards"][0], fails_at(options, program)
    growth = card.get("growth") or {}
    told = growth.get("fails_at")
    said = "status %d, step %s, was %s, after %s steps, line %s" % (status, told, truth, found["steps"], growth.get("line"))
    if truth is None:
        return False, said + " (the program did not fail by memory)"
    if told is None:    # it ran out of memory in what was recorded
        return status == 1 and growth != {} and found["steps"] is not None and truth <= found["steps"], said
    return status == 1 and abs(told - truth) <= max(1, truth * NEAR), said


def first_memory(verdict):
    """Of a failure that ended the program, or of the first that it handled."""
    for one in [verdict, *verdict.get("notes", [])]:
        if one.get("memory"):
            return one["memory"]
    return {}


def judge_verdict(options, program):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        truth = fails_at(options, program, out=out)
        memory = first_memory(json.loads(cuwhy(options, ["explain", "--json", out]).stdout))
    growth = memory.get("growth")
    if not growth or not growth["elsewhere"]:
        return False, "step %s, growth %s, settled %s" % (truth, growth, memory.get("settled"))
    larger = growth["elsewhere"]
    longer = fails_at(options, program, larger["gpu"])
    told, was = larger["fails_at"] / growth["fails_at"], longer / truth if longer and truth else 0
    said = "iteration %s of %s, was step %s; on %s %s, was %s; line %s, since %s" % (
        growth["fails_at"], os.path.basename(growth["loop"] or "?"), truth, larger["gpu"], larger["fails_at"], longer, growth["line"], growth["since"])
    return abs(told - was) <= was * NEAR, said


def judge_settled(options, program):
    status, found = fit(options, program)
    if "cards" not in found:
        return False, "no answer: %s" % found.get("failure")
    card = found["cards"][0]
    return status == 0 and card["fits"] and "growth" not in card, "status %d, settled %s after %s steps, growth %s" % (
        status, found["settled"], found["steps"], card.get("growth"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", help="folder with PyTorch")
    parser.add_argument("--gpu", default="rtx4060", help="the card (default: %(default)s)")
    parser.add_argument("--steps", help="end leaking programs after so many steps")
    parser.add_argument("--verdict", action="store_true", help="judge the verdicts of runs that failed")
    parser.add_argument("programs", nargs="+", help="folders or files")
    options = parser.parse_args()
    if not options.torch:
        import check
        options.torch, why = check.install("2.11.0")
        if not options.torch:
            print("growing: SKIPPED: PyTorch cannot be installed: %s" % why)
            return 0
    passed = failed = 0
    for program in programs(options.programs):
        name = os.path.basename(program)
        if options.verdict and not name.startswith("leak"):
            continue
        right, said = (judge_verdict if options.verdict else judge_leak if name.startswith("leak") else judge_settled)(options, program)
        passed, failed = passed + right, failed + (not right)
        print("%s - %s: %s" % ("ok" if right else "not ok", name, said), flush=True)
    print("growing: %d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
