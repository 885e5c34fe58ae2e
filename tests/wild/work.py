# SPDX-License-Identifier: Apache-2.0
"""Runs a group of tests, or a program, on one side, and says what came of each."""
import json
import os
import shlex
import shutil
import tempfile

import compare
import suites

TEXT = 20000        # characters of a program's output that are compared
ROUNDING = r"(?<=\.\d\d)\d+"       # atomics add in another order each time
RANK = ("passed", "skipped", "xfailed", "xpassed", "failed", "error", "crashed")


class Outcomes(dict):
    """{test: outcome}, what each took, and how long the processes ran and how they ended."""

    def __init__(self):
        super().__init__()
        self.seconds, self.ran, self.ends, self.said = {}, 0.0, [], ""


def read_reports(path):
    """{test: (outcome, message, seconds)} of tests that finished, and the test that was running at the end."""
    done, parts, running = {}, {}, None
    if not os.path.exists(path):
        return done, running
    with open(path, encoding="utf-8") as stream:
        for text in stream:
            try:
                line = json.loads(text)
            except ValueError:
                continue        # the process was killed as it wrote
            test, when = line["id"], line["when"]
            if when == "start":
                running, parts[test] = test, []
            elif when == "finish":
                reports = parts.pop(test, [])
                running = None
                worst = max(reports, key=lambda r: RANK.index(r["outcome"]), default=None)
                if worst:
                    done[test] = worst["outcome"], worst["message"], sum(r["seconds"] for r in reports)
            else:
                parts.setdefault(test, []).append(line)
    return done, running


def run_tests(side, suite, ids):
    """The tests of IDS in one process; in another, those that are left when it crashes or hangs."""
    found, left = Outcomes(), list(ids)
    place = tempfile.mkdtemp(prefix="t", dir=side.setup.scratch)
    env = dict(suite.get("env", {}), WILD_CHOSEN=os.path.join(place, "chosen"), WILD_REPORTS=os.path.join(place, "reports"))
    try:
        while left:
            with open(env["WILD_CHOSEN"], "w", encoding="utf-8") as stream:
                json.dump(left, stream)
            paths = list(dict.fromkeys(test.partition("::")[0] for test in left))
            result = side.run(suites.pytest_command(side, suite, paths), side.copy_of(suite["folder"]), env, suite["seconds"])
            done, running = read_reports(env["WILD_REPORTS"])
            for test, (kind, message, seconds) in done.items():
                found[test] = compare.outcome(kind, compare.normal(message, [side.setup.scratch]))
                found.seconds[test] = seconds
            if running:
                found[running] = result.end()
            found.ran += result.seconds
            found.ends.append(result.end())
            found.said = result.output
            before, left = len(left), [test for test in left if test not in found]
            if not running and (len(left) == before or found.ends[-1].startswith("status ")):
                break       # it ended by itself, or nothing can be made of it
            os.remove(env["WILD_REPORTS"])
        for test in left:
            found.setdefault(test, "not run: " + found.ends[-1])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return found


def run_program(side, program):
    """The commands of a program, in a copy of its folder; the outcome is their status and what they printed."""
    found = Outcomes()
    env = dict(program.get("env", {}), PYTHONUNBUFFERED="1")     # what it prints is its progress
    place = tempfile.mkdtemp(prefix="p", dir=side.setup.scratch)
    folder = os.path.join(place, "copy")
    printed = os.path.join(place, "printed")
    try:
        shutil.copytree(os.path.join(side.setup.wild, program["folder"]), folder, symlinks=True)
        for data in program.get("data", []):
            side.setup.make_data(data, folder)
        for command in program["commands"]:
            argv = [side.setup.python if word == "python" else word for word in shlex.split(command)]
            result = side.run(argv, os.path.join(folder, program.get("cwd", "")), env, program["seconds"], printed)
            found.ran += result.seconds
            found.ends.append(result.end())
            found.said = result.output
            if result.status:
                break
        with open(printed, encoding="utf-8", errors="replace") as stream:
            text = compare.normal(stream.read(TEXT), [side.setup.scratch], [*program.get("ignore", []), ROUNDING])
        found[program["name"]] = compare.outcome(found.ends[-1], "\n" + text)
        found.seconds[program["name"]] = found.ran
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return found
