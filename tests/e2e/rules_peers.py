# SPDX-License-Identifier: Apache-2.0
"""Several processes: what is printed when one fails and takes others down with it."""
import os
import re
import subprocess

from toolbox import PATIENCE, same

HERE = os.path.dirname(os.path.abspath(__file__))


def lines_of(box, case):
    """The lines about processes that `cuwhy run` prints for a program of cases/."""
    path = os.path.join(HERE, "cases", case)
    done = subprocess.run([box.cuwhy, "run", "--gpu", "sim:h200", "--", box.python, path], capture_output=True,
                          text=True, timeout=PATIENCE, env=box.env(PYTHONPATH=os.path.join(HERE, "site-packages")))
    return [line for line in done.stderr.splitlines() if line.startswith("cuwhy: ")]


def rule__a_victim_is_one_line_and_not_a_second_report(box):
    lines = lines_of(box, "victims_parent.py")
    same(len(lines), 2, "lines (%s)" % lines)
    assert lines[0].endswith("(CUDA error 716)"), lines[0]
    assert re.fullmatch(r"cuwhy: process \d+ failed because process \d+ did: its pipe was closed at the other end",
                        lines[1]), lines[1]


def rule__every_ended_sibling_is_named(box):
    lines = lines_of(box, "victims_terminated.py")
    victims = [re.fullmatch(r"cuwhy: process (\d+) failed because process (\d+) did: it was ended by signal 15", line)
               for line in lines[1:]]
    same((len(lines), len(victims), all(victims)), (3, 2, True), "lines (%s)" % lines)
    same(len({v.group(1) for v in victims}), 2, "processes")
    same(len({v.group(2) for v in victims}), 1, "to blame")


def rule__a_victim_that_ends_first_is_reported_behind_the_first_failure(box):
    lines = lines_of(box, "victims_collective.py")
    same(len(lines), 2, "lines (%s)" % lines)
    assert lines[0].endswith("(CUDA error 700)"), lines[0]
    assert re.fullmatch(r"cuwhy: process \d+ failed because process (\d+) did: its collective operation failed", lines[1]), lines[1]


def rule__failures_of_their_own_are_nobodys_victims(box):
    assert not [line for line in lines_of(box, "victims_none.py") if "because" in line]
