#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what is wrong with the programs that the cause files show (`program:` in kb/causes); nothing if all is well.

    tools/check_programs.py [BUILD]    with a build folder: also check that cuwhy prints them

A program must be one that `make check-gpu` runs, its header must expect this cause, and it must be self-contained and small.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.dont_write_bytecode = True
import harness  # noqa: E402

LINES = 30      # a longer program shows less
RUN = re.compile(r"tests/gpu/(cases|faults|memory)/\w+\.py$")


def program_of(cause_file):
    """The path in a cause file's header, or None."""
    with open(cause_file, encoding="utf-8") as f:
        found = re.findall(r"^program:\s*(.*?)\s*$", f.read().split("\n---\n")[1], re.M)
    return " and ".join(found) or None


def shown(path):
    """The part of a program that people see; make_kb.sh does the same."""
    script = os.path.join(ROOT, "tools", "program_text.sed")
    return subprocess.run(["sed", "-E", "-f", script, path], check=True, capture_output=True, text=True).stdout


def problems(cause, program):
    path = os.path.join(ROOT, program)
    if not RUN.match(program) or not os.path.isfile(path):
        return ["is not one of the programs that make check-gpu runs"]
    case, text, found = harness.Case(path), shown(path), []
    if not case.main or case.main.get("cause", [""])[0] != cause:
        found.append("does not expect %s first" % cause)
    if text.count("\n") > LINES:
        found.append("shows %d lines, more than %d" % (text.count("\n"), LINES))
    if case.uses or re.search(r"^\s*(from|import) +helpers", text, re.M):
        found.append("is not self-contained: it imports helpers")
    if re.search(r"<- |^# *expect", text, re.M):
        found.append("shows marks that are for the tests")
    try:
        compile(text, program, "exec")
    except SyntaxError as e:
        found.append("does not compile as shown: %s" % e)
    return found


def printed(build, cause, program):
    """Whether `cuwhy explain` ends with the program."""
    done = subprocess.run([os.path.join(build, "cuwhy"), "explain", cause], capture_output=True, text=True)
    end = "\nA program that shows it\n" + shown(os.path.join(ROOT, program))
    return [] if done.stdout.endswith(end) else ["is not what cuwhy explain %s prints" % cause]


def main():
    for cause_file in sorted(glob.glob(os.path.join(ROOT, "kb", "causes", "*.md"))):
        cause, program = os.path.basename(cause_file)[:-3], program_of(cause_file)
        found = problems(cause, program) if program else []
        if program and not found and len(sys.argv) > 1:
            found = printed(sys.argv[1], cause, program)
        for problem in found:
            print("kb/causes/%s.md: %s %s" % (cause, program, problem))


if __name__ == "__main__":
    main()
