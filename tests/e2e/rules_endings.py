# SPDX-License-Identifier: Apache-2.0
"""Whose failure ended the program: what is known about the handlers around a failed call, and what follows from it."""
import os
import re

import endings
from rules_recorder import find_pythons
from toolbox import HERE, Skip, each

PROGRAM = os.path.join(HERE, "programs", "handlers.py")


def wanted():
    """{number: what the comment says}, and the line of each call."""
    with open(PROGRAM, encoding="utf-8") as stream:
        found = re.findall(r"fail\((\d+)\).*?# handlers: (.*)", stream.read())
    return {int(number): [] if text == "none" else text.split("; ") for number, text in found}


def shown(handler):
    """As in a comment."""
    kind, does, _, *types = handler.split(" ", 3)
    types = " ".join(types) or "-"
    return "with " + types if kind == "with" else "except %s %s" % (does, types)


def rule__the_handlers_around_a_failed_call_are_known(box):
    want = wanted()
    pythons = find_pythons()
    if not pythons:
        raise Skip("no Python")
    for version, python in sorted(pythons.items()):
        if version == "3.14":
            continue    # its bytecode is not read yet
        run = box.under([python, PROGRAM], PYTHONPATH=os.path.join(HERE, "site-packages"))
        got = {}
        for line in box.peek(run, "handlers"):
            number, *handlers = line.split(";")
            got.setdefault(int(number), [shown(h) for h in handlers])
        wrong = ["fail(%d): %s, expected %s" % (n, got.get(n), want[n]) for n in want if got.get(n) != want[n]]
        assert not wrong, "Python %s:\n%s" % (version, "\n".join(wrong))


def programs():
    """One program of each kind, always the same ones."""
    return [endings.random_program(False, seed + 1)[0] for seed in range(len(endings.actions()))]


# What cannot be told from a reason of the program's own, or the other way round, by anything that can be seen.
EITHER = {"main-print", "main-log", "main-return", "main-quit", "main-saves", "spawned", "status-exit", "unittest", "unittest-more", "pytest", "raises", "raises-words",
          "raises-there", "helper", "helper-line", "decorator", "retried", "same-function", "unittest-expected", "pytest-xfail", "child-tried", "child-joined", "context-exits", "gave-up", "other-words", "exit-caught",
          "thread-exits", "child-of-none", "child-again", "ignored-here", "atexit"}


@each(programs)
def rule__it_is_known_whose_failure_ended_a_program(box, name):
    """"unsure" is allowed where both may be, "WRONG" nowhere."""
    said = endings.try_one(box.python, box.cuwhy, os.path.join(box.scratch, "program"), endings.random_program(False, int(name.rsplit("-", 1)[1]))[1])
    if "no pytest" in said:
        raise Skip("no pytest")
    action = name.rsplit("-", 4)[0]
    assert said.startswith("right" if action not in EITHER else ("right", "unsure")), said


CALL = "import atexit, os, sys, cudrv\ncudrv.init()\ndef work():\n    cudrv.alloc(1 << 40)\n"
SENTENCES = {
    "exits": ("def run():\n    try:\n        work()\n    except cudrv.CudaError:\n        os._exit(1)\nrun()\n",
              "code that exits may have caught it; the program ended with status 1, perhaps for another reason"),
    "own-status": ("try:\n    work()\nexcept cudrv.CudaError as e:\n    status = 9\nsys.exit(status)\n",
                   "the program caught it and ended with status 9, perhaps for another reason"),
    "at-exit": ("atexit.register(work)\nsys.exit(1)\n",
                "no exception was seen to reach the top of the program; it ended with status 1, perhaps for another reason")}


@each(sorted(SENTENCES))
def rule__what_may_have_ended_a_program_is_told_in_a_sentence(box, which):
    text, told = SENTENCES[which]
    because = box.verdict(box.under(box.script(CALL + text)))["because"]
    assert because.endswith("; but " + told), because
