# SPDX-License-Identifier: Apache-2.0
"""How `make check` runs its parts."""
import os
import subprocess
import sys

from toolbox import same

PARTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parts.py")


def rule__all_parts_run_after_one_failed(box):
    with open(os.path.join(box.scratch, "Makefile"), "w", encoding="ascii") as out:
        out.write("check-first:\n\t@echo first; exit 3\ncheck-%:\n\t@echo part $*\n")
    run = subprocess.run([sys.executable, PARTS, "logs", "check-first", "check-second", "check-third", "check-last"], cwd=box.scratch,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, MAKEFLAGS="-j1"), universal_newlines=True, check=False)
    same(run.returncode, 1, "status")
    same([line for line in run.stdout.splitlines() if line.startswith("part ")], ["part second", "part third", "part last"], run.stdout)
    last = run.stdout.splitlines()[-1]
    assert last.startswith("---- 4 of 4 parts") and "FAILED: check-first (" in last and "second" not in last, last
