#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end tests on the simulated GPU: every cause, every near miss, every rule of the recorder.

    tests/e2e/run.py [--build build] [-j N] [--json FILE] [--artifacts DIR] [name…]

Programs with a declared verdict are in cases/; what the recorder must never do is in rules_*.py.
"""
import argparse
import glob
import importlib
import os
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, HERE)
import harness  # noqa: E402
import busy  # noqa: E402
import report  # noqa: E402
import toolbox  # noqa: E402

CASES, ENDINGS = os.path.join(HERE, "cases"), (".py", ".sh", ".c")
# those that take longest, because they wait
FIRST = ("rules_hangs", "rules_live", "rules_job", "rules_program", "rules_folders", "rules_supervisor", "rules_recorder", "rules_guest",
         "rules_frames", "rules_turns", "rules_typed", "rules_neighbors", "rules_dumps", "rules_late", "rules_faults", "rules_compare")
ALL = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "rules_*.py"))}
RULES = FIRST + tuple(sorted(ALL - set(FIRST)))


class Builder:
    """Compiles the C programs of the tests, once each."""

    def __init__(self, build):
        self.build = build
        self.target = os.path.join(build, "tests", "e2e")
        self.lock, self.done = threading.Lock(), set()
        os.makedirs(self.target, exist_ok=True)

    def __call__(self, case):
        return self.compile(case.path, case.name, case.build)

    def compile(self, source, name, flags=()):
        flags = [f if f != "-lcuda" else "-l:libcuda.so.1" for f in flags]
        output = os.path.join(self.target, name)
        # another suite may use the same file at the moment (make -j): it finds a whole one, old or new
        made_here = "%s.%d" % (output, os.getpid())
        command = [*os.environ.get("CC", "cc").split(), "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-g",
                   "-I" + os.path.join(ROOT, "include"), source, "-o", made_here,
                   "-L" + os.path.join(self.build, "sim")] + flags
        with self.lock:
            if output not in self.done:
                made = subprocess.run(command, capture_output=True, text=True)
                if made.returncode:
                    raise toolbox.BuildError(made.stderr)
                os.replace(made_here, output)
                self.done.add(output)
        return output


class RuleCase:
    """Makes a rule's test look like a case to the reporting code."""

    def __init__(self, function, *arguments):
        self.name, self.function, self.arguments = "__".join((function.__name__,) + arguments), function, arguments
        self.alone = getattr(function, "alone", False)

    def expected(self):
        return "holds"


class Runner:
    """Runs cases and the tests of rules."""

    def __init__(self, cuwhy, python, builder):
        self.cases = harness.Harness(cuwhy, python, default_gpu="sim:tiny", build=builder)
        self.box = toolbox.Toolbox(cuwhy, python, builder)

    def run(self, case):
        if isinstance(case, RuleCase):
            return toolbox.run_rule(self.box, case, harness.Result(case))
        return self.cases.run(case)


def tests_of(function):
    of = getattr(function, "each", None)
    if of is None:
        return [RuleCase(function)]
    return [RuleCase(function, one) for one in (of() if callable(of) else of)]


def load_rules(filters):
    found = []
    if filters and all(f.startswith("=") and not f.startswith("=rule__") for f in filters):
        return found        # to import all of them takes longer than a case
    for name in RULES:
        module = importlib.import_module(name)
        for function in [f for n, f in vars(module).items() if n.startswith("rule__")]:
            found += tests_of(function)
    return [c for c in found if harness.wanted(c.name, filters)]


def arguments():
    parser = argparse.ArgumentParser(description="cuwhy on the simulated GPU")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("names", nargs="*", help="run only tests whose name contains one of these, or is it (=NAME)")
    parser.add_argument("--list", action="store_true", help="print the names of the tests, and run none")
    parser.add_argument("-j", type=int, dest="jobs", help="so many at a time; else as many as keep the processors busy")
    parser.add_argument("--python", default=toolbox.real_python(sys.executable))
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--artifacts", help="leave what failing tests printed in this folder")
    return parser.parse_args()


def default_signals():
    """Programs inherit which signals are ignored: in the background of a shell Ctrl-C, under nohup a hangup."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


def main():
    default_signals()
    args = arguments()
    os.environ["PYTHONPATH"] = os.path.join(HERE, "site-packages")
    if args.list:
        print("\n".join(c.name for c in load_rules(args.names) + harness.load_cases(CASES, ENDINGS, args.names)))
        return 0
    build = os.path.abspath(args.build)
    cuwhy, builder = os.path.join(build, "cuwhy"), Builder(build)
    cases = harness.load_cases(CASES, ENDINGS, args.names)
    jobs, most = (args.jobs, 0) if args.jobs else (2 * busy.PROCESSORS, busy.EACH * busy.PROCESSORS)
    results = harness.run_all(Runner(cuwhy, args.python, builder), load_rules(args.names) + cases, jobs, report.report_line, most)
    return report.finish(results, args.json, args.artifacts)


if __name__ == "__main__":
    sys.exit(main())
