#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What leaves cuwhy without secrets: hidden.py [--build build] [--seed N] [--cases N]. Lines from a grammar (secret_lines.py) lose theirs; lines of
Python's own library, where there are none but examples, stay as they are."""

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from secret_lines import Maker  # noqa: E402

# One in so many lines of the standard library at most. It has modules about passwords, cookies and logins, whose examples are removed:
# 0.2 in a thousand lines were.
INNOCENT = 2000


def hidden(build, texts):
    done = subprocess.run([os.path.join(build, "tests", "hide")], input=b"".join(t + b"\0" for t in texts), stdout=subprocess.PIPE, check=True)
    return done.stdout.split(b"\0")[:-1]


def check_removed(build, seed, cases):
    maker = Maker(seed)
    made = [maker.case() for _ in range(cases)]
    bad = []
    for (template, text, marks), shown in zip(made, hidden(build, [text.encode() for _, text, _ in made])):
        shown = shown.decode()
        if any(mark in shown for mark in marks) or shown.count("\n") != text.count("\n"):
            bad.append((template, text, shown))
    for template, text, shown in bad[:20]:
        print(f"not ok - a secret stays, or a line is lost: {template!r}\n    {text!r}\n    {shown!r}")
    print(f"secrets: {cases} cases with seed {seed}: {len(bad)} keep a secret")
    return not bad


def library():
    """The standard library without its tests, which are full of made-up passwords."""
    top = os.path.dirname(os.__file__)
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders if f not in ("site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"))
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as f:
                    yield f.read().replace(b"\0", b"")


def check_innocent(build):
    texts = list(library())
    lines = changed = 0
    for before, after in zip(texts, hidden(build, texts)):
        pairs = list(zip(before.split(b"\n"), after.split(b"\n")))
        lines += len(pairs)
        changed += sum(1 for a, b in pairs if a != b)
    print(f"secrets: {changed} of {lines} lines of Python's library lose something")
    return changed * INNOCENT <= lines and lines > 100000


def check(build, seed=1, cases=10000):
    results = [check_removed(build, seed, cases), check_innocent(build)]
    return all(results)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=10000)
    o = p.parse_args()
    sys.exit(0 if check(o.build, o.seed, o.cases) else 1)


if __name__ == "__main__":
    main()
