#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/gpu/faults on a real GPU and prints what cuwhy says beside the truth.

    tests/gpu/faults.py [--build build] [-j N] [--no-sanitizer] [--quick] [--json FILE] [--artifacts DIR] [name…]

Every program has its fault planted at a known line. It runs under cuwhy, under cuwhy without core dumps,
without cuwhy (status and stdout must be the same), and under compute-sanitizer, whose kernel, thread and
address must be cuwhy's. A name is part of a program's name. Without a GPU everything is skipped, aloud.
"""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
sys.path.insert(0, HERE)
import harness  # noqa: E402
import memcheck  # noqa: E402
import report  # noqa: E402
import run as gpu  # noqa: E402

MEMCHECK = ("--tool", "memcheck", "--print-limit", "10000", "--show-backtrace", "device",
            "--report-api-errors", "no", "--target-processes", "all", "--launch-timeout", "0")
COLUMNS = (("program", "program"), ("cause", "cause"), ("certainty", "sure"), ("line", "line"),
           ("kernel", "kernel"), ("thread", "thread"), ("address", "address"), ("condition", "condition"), ("took", "seconds"),
           ("off_cause", "| no dump: cause"), ("off_certainty", "sure"), ("off_line", "line"))
KEPT = 400000       # characters of one artifact


def place(where):
    return (os.path.basename((where or {}).get("file") or ""), (where or {}).get("line"))


class Faults(harness.Harness):
    """Judges a case as ever, then with dumps off, then against the sanitizer."""

    def __init__(self, cuwhy, python, missing, sanitizer, limit):
        super().__init__(cuwhy, python, missing)
        self.sanitizer, self.limit = sanitizer, limit

    def judge(self, case, result, folder):
        case.timeout = min(case.timeout, self.limit)
        super().judge(case, result, folder)
        fault = self.the_fault(case, result.verdict or {})
        row = result.more
        row.update(cause=result.got, certainty=fault.get("certainty") or "-",
                   took=round(result.took, 1), line=result.line if result.line != "-" else self.note_line(case, fault))
        self.check_either(case, result, fault)
        if "off" not in case.skip:
            self.without_dumps(case, result, folder + "-off")
        if fault:
            self.against_others(case, result, fault)

    def the_fault(self, case, verdict):
        """The verdict, or the note that stands for it in a program that handled its fault."""
        if verdict.get("cause") not in (None, "none"):
            return verdict
        return (verdict.get("notes") or [{}])[0] if case.notes else {}

    def note_line(self, case, fault):
        if "note" not in case.marks or not fault:
            return "-"
        return "ok" if place(fault.get("where")) in case.marks["note"] else "no"

    def check_either(self, case, result, fault):
        """Two launches that cannot be told apart: both lines are named, or the right one is certain."""
        if "either" not in case.marks or not fault:
            return
        where, text = place(fault.get("where")), result.artifacts["verdict.json"]
        if fault.get("certainty") == "certain":
            if where in case.marks["either"]:
                result.bad("certain, but %s:%d did nothing wrong" % where)
            return
        listed = [where] + [place(s) for s in fault.get("suspects") or []]
        for mark in case.marks["here"]:
            if mark not in listed and "%s:%d" % mark not in text:
                result.bad("%s:%d is not named" % mark)

    # ---- without core dumps ---------------------------------------------------------------------

    def without_dumps(self, case, result, folder):
        run = harness.Run(self.under_cuwhy(case, folder, not case.silent, ["--no-core-dump"]),
                          self.environment(case), case.timeout)
        result.artifacts["off.stderr"] = run.err
        if run.timed_out:
            result.bad("no dump: still running after %d s" % case.timeout)
        elif result.plain and (run.status, run.out) != (result.plain.status, result.plain.out):
            result.bad("no dump: status %d or stdout differ from the run without cuwhy" % run.status)
        verdict = self.load_verdict(result, folder, "off.verdict.json")
        if verdict is None:
            return
        fault = self.the_fault(case, verdict)
        line = self.line_among(case, fault) if fault else "-"
        result.more.update(off_cause=verdict.get("cause"), off_certainty=fault.get("certainty") or "-",
                           off_line=line)
        self.check_without(case, result, verdict, fault, line)

    def line_among(self, case, fault):
        """Without a dump the line that ran a graph or a backward is as good as can be had."""
        marks = [m for name in ("here", "note") for m in case.marks.get(name, [])]
        where = place(fault.get("where"))
        if where in marks:
            return "ok"
        for name in ("replay", "backward"):
            if where in case.marks.get(name, []):
                return name
        suspects = fault.get("suspects") or []
        marks += [m for name in ("replay", "backward") for m in case.marks.get(name, [])]
        among = any(place(s) in marks for s in suspects)
        return "among %d" % len(suspects) if among else "no"

    def check_without(self, case, result, verdict, fault, line):
        if (verdict.get("cause") == "none") != (case.main["cause"] == ["none"]):
            result.bad("no dump: cause %s" % verdict.get("cause"))
        if fault.get("certainty") == "certain":
            result.bad("no dump: certain without a dump")
        if fault and line == "no":
            result.bad("no dump: the line is neither named nor among the suspects")

    # ---- what others say ------------------------------------------------------------------------

    def against_others(self, case, result, fault):
        """Asserts are in the driver's own lines, everything else is the sanitizer's business."""
        asserted = memcheck.assertions(result.plain.err) if result.plain else []
        if asserted:
            self.compare_words(result, fault, asserted)
            self.compare(result, fault, asserted, memcheck.same_function(fault, asserted), None)
        elif self.sanitizer and "sanitizer" not in case.skip:
            reports = self.sanitize(case, result)
            near = memcheck.with_thread(fault, reports)
            self.compare(result, fault, reports, memcheck.same_kernel(fault, reports),
                         memcheck.address_match(fault, near))

    def compare_words(self, result, fault, asserted):
        """Condition, file and line are the driver's own; what cuwhy does not know it must not make up."""
        told = (fault.get("fault") or {}).get("assert") or {}
        printed = {key: {getattr(a, key) for a in asserted} for key in ("condition", "file", "line")}
        for key, words in printed.items():
            if told.get(key) is not None and told[key] not in words:
                result.bad("assert %s %r, the driver printed %s" % (key, told[key], sorted(words)))
        result.more["condition"] = "yes" if told.get("condition") else "one of" if told.get("one_of") else "no"

    def sanitize(self, case, result):
        run = harness.Run([self.sanitizer] + list(MEMCHECK) + self.command(case),
                          self.environment(case), max(self.limit, 120))
        result.artifacts["sanitizer"] = text = run.out + run.err
        if run.timed_out:
            result.bad("compute-sanitizer: still running after %d s" % max(self.limit, 120))
        elif "========= COMPUTE-SANITIZER" not in text:
            result.bad("compute-sanitizer did not start: " + text.strip()[-200:])
        return memcheck.parse(text)

    def compare(self, result, fault, listed, kernel, address):
        """`listed` are reports or assertions; None is what nobody else knows either."""
        row, where = result.more, fault.get("fault") or {}
        thread = bool(memcheck.with_thread(fault, listed)) if listed and where.get("thread") else None
        words = {None: "-", True: "yes", False: "NO", "": "NO"}
        row.update(kernel=words[kernel], thread=words[thread], listed=len(listed),
                   address=words.get(address, address))
        name = (fault.get("kernel") or {}).get("name")
        if kernel is False:
            result.bad("kernel %s is not among those that compute-sanitizer names" % name)
        if thread is False:
            result.bad("block %s thread %s is not among the %d listed" % (where.get("block"),
                                                                         where.get("thread"), len(listed)))
        if listed and where and not where.get("thread") and where.get("pc"):
            row["thread"] = "gone"      # no warp of the kernel was left: the dump has only where it happened
        elif listed and not where and (fault.get("error") or {}).get("code") == 710:
            row["thread"] = "lost"      # the driver gave up the dump of an assertion
        elif listed and not where.get("thread"):
            result.bad("no thread named, though %d are listed" % len(listed))
        if address == "" and where.get("space") in (None, "global", "generic"):
            result.bad("address %s is not among those listed for the thread" % where.get("address"))


def print_table(results):
    rows = [[title for _, title in COLUMNS]]
    for r in sorted(results, key=lambda r: r.case.name):
        if r.skip:
            rows.append([r.case.name, "skipped: " + r.skip] + [""] * (len(COLUMNS) - 2))
            continue
        cells = dict(r.more, program=r.case.name)
        cells["off_cause"] = "| " + str(cells.get("off_cause", "-"))
        rows.append([str(cells.get(key, "-")) for key, _ in COLUMNS])
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def print_counts(results):
    done = [r for r in results if not r.skip and r.case.main["cause"] != ["none"]]
    right = sum(r.more.get("cause", "").split(" ")[0] in r.case.main["cause"] for r in done)
    print("%d planted faults: cause right %d, line right %d; compared with others: kernel %s, thread %s, "
          "address %s; dumps that the driver gave up %d; without dumps: line named %d, among the suspects %d" % (
              len(done), right, sum(r.more.get("line") == "ok" for r in done),
              share(done, "kernel"), share(done, "thread"), share(done, "address"),
              sum(r.more.get("thread") == "lost" for r in done),
              sum(r.more.get("off_line") == "ok" for r in done),
              sum(str(r.more.get("off_line")).startswith("among") for r in done)))


def share(results, key):
    known = [r.more[key] for r in results if r.more.get(key, "-") not in ("-", "gone", "lost")]
    return "%d of %d" % (sum(word != "NO" for word in known), len(known))


def keep(results, folder):
    """Everything that every program left, in one folder, for whoever reads it later."""
    os.makedirs(folder, exist_ok=True)
    for result in results:
        left = dict(result.artifacts)
        if result.problems:
            left["problems"] = "\n".join(result.problems) + "\n"
        for name, text in left.items():
            with open(os.path.join(folder, "%s.%s" % (result.case.name, name)), "w",
                      encoding="utf-8") as stream:
                stream.write(text[:KEPT])


def arguments():
    parser = argparse.ArgumentParser(description="planted faults on a real GPU")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("names", nargs="*", help="run only programs whose name contains one of these")
    parser.add_argument("-j", type=int, default=min(8, os.cpu_count() or 1), dest="jobs")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--sanitizer", action=argparse.BooleanOptionalAction, default=True,
                        help="compare with compute-sanitizer where it is installed")
    parser.add_argument("--quick", action="store_true", help="not without dumps, not under the sanitizer")
    parser.add_argument("--limit", type=int, default=180, help="seconds that one run may take")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--artifacts", help="leave what all runs printed in this folder")
    return parser.parse_args()


def main():
    args = arguments()
    cases = harness.load_cases(os.path.join(HERE, "faults"), (".py",), args.names)
    missing = gpu.what_is_missing(args.python)
    for case in cases:
        case.needs += ["GPU"]
        case.same_output = "plain" not in case.skip
        case.skip += ["off"] if args.quick else []
    sanitizer = gpu.find_tool("compute-sanitizer") if args.sanitizer and not args.quick else None
    if args.sanitizer and not args.quick and not sanitizer:
        print("# compute-sanitizer is not installed: nothing is compared with it")
    runner = Faults(os.path.join(args.build, "cuwhy"), args.python, missing, sanitizer, args.limit)
    results = harness.run_all(runner, cases, args.jobs, report.report_line)
    print_table(results)
    print_counts(results)
    if args.artifacts:
        keep(results, args.artifacts)
    return report.finish(results, args.json, None)


if __name__ == "__main__":
    sys.exit(main())
