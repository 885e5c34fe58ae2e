#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suites and programs that other people wrote, with and without cuwhy: does any test end differently? make check-wild.

    tests/wild/run.py --wild FOLDER [--seconds N] [--jobs N] [--resume] [name…]

FOLDER holds the sources (suites.json and programs.json say which; what is missing is told how to fetch), and in FOLDER/site
the packages that they need and the Python lacks. Each piece of a suite runs twice at the same moment, plain and under
`cuwhy run`. Tests that end differently run again, alone, twice on each side; then compare.judge says whose fault it is.
Every finished piece is in the JSON file; --resume goes on from there. Status 1: cuwhy changed something.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import compare  # noqa: E402
import made_up  # noqa: E402
import sides  # noqa: E402
import suites  # noqa: E402
import work  # noqa: E402

GRACE = 45          # seconds that pieces get to finish when the time is up
AGAIN = 2           # how often a test that differs runs again, on each side
ALONE = 4           # more tests than this that differ in one piece run again together
SLOWER = 3          # of each piece: the tests that cuwhy slowed down most
END = "(end)"       # stands for the end of a process, among tests
UNCLEAR = "unclear"     # it differs, and there was no time to run it again
FOUND = ("same", "differs", "flaky", "timing", "once", UNCLEAR)


class Setup:
    """What every part must know: programs, folders, options."""

    def __init__(self, args):
        build = os.path.abspath(args.build)
        self.python, self.cuwhy, self.simulated = args.python, os.path.join(build, "cuwhy"), os.path.join(build, "sim")
        self.gpu, self.options, self.wild = args.gpu, args.cuwhy_options, os.path.abspath(args.wild)
        site = os.path.join(self.wild, "site")
        self.site = site if os.path.isdir(site) else None
        self.scratch = tempfile.mkdtemp(prefix="wild-")

    def make_data(self, words, folder):
        kind, place = words.split()
        made_up.KINDS[kind](os.path.join(folder, place), random.Random(14))


class Clock:
    """When to start nothing new, and when to stop what runs."""

    def __init__(self, seconds):
        self.began, self.seconds, self.interrupted = time.monotonic(), seconds, False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupt)

    def interrupt(self, *_):
        self.interrupted = True

    def passed(self):
        return time.monotonic() - self.began

    def closing(self):
        return self.interrupted or self.passed() > self.seconds

    def stop(self):
        return self.interrupted or self.passed() > self.seconds + GRACE


class State:
    """The JSON file: the pieces, and what came of those that finished."""

    def __init__(self, path, resume):
        self.path, self.lock = path, threading.Lock()
        self.data = {"schema": 1, "versions": {}, "pieces": {}, "done": {}, "seconds": 0}
        if resume and os.path.exists(path):
            self.data = suites.load(path)

    def save(self):
        part = self.path + ".part"
        with open(part, "w", encoding="utf-8") as stream:
            json.dump(self.data, stream, indent=1)
        os.replace(part, self.path)

    def finish(self, key, result):
        with self.lock:
            self.data["done"][key] = result
            self.save()

    def left(self):
        """The pieces that did not run, or differed and did not run again."""
        done = {key for key, result in self.data["done"].items() if all(odd["found"] != UNCLEAR for odd in result["odd"])}
        return [key for key in self.data["pieces"] if key not in done]


class Harness:
    def __init__(self, args, clock):
        self.args, self.clock, self.setup = args, clock, Setup(args)
        self.plain, self.cuwhy = (sides.Side(name, self.setup, clock.stop) for name in ("plain", "cuwhy"))
        self.state = State(args.out, args.resume)
        self.printing = threading.Lock()

    def say(self, text):
        with self.printing:
            print(text, flush=True)

    # ---- what there is to do -------------------------------------------------------------------

    def prepare(self):
        """Fills self.entries, and the state's pieces unless they are there already."""
        listed = suites.load(self.args.suites)
        entries = listed["suites"] + suites.load(self.args.programs)["programs"]
        entries = [e for e in entries if not self.args.names or any(name in e["name"] for name in self.args.names)]
        able, said, versions = suites.usable(entries, listed["sources"], self.setup)
        for sentence in said:
            self.say("wild: " + sentence)
        self.entries = {entry["name"]: entry for entry in able}
        self.state.data["versions"] = versions
        fresh = [e for e in able if not any(p["suite"] == e["name"] for p in self.state.data["pieces"].values())]
        for entry in fresh:
            if "commands" in entry:
                self.state.data["pieces"][entry["name"]] = {"suite": entry["name"], "ids": [entry["name"]]}
        paths = [(suite, path) for suite in fresh for path in suite.get("files", {})]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs * 2) as pool:
            found = list(pool.map(self.collect, paths))
        for (suite, path), (ids, why) in zip(paths, found):
            if why:
                self.say("wild: %s: no tests in '%s': %s" % (suite["name"], path, why))
            for number, piece in enumerate(suites.pieces(suite, ids)):
                self.state.data["pieces"]["%s %s %d" % (suite["name"], path, number)] = {"suite": suite["name"], "ids": piece}
        self.state.save()

    def collect(self, job):
        suite, path = job
        scaled = dict(suite, files={path: max(1, round(suite["files"][path] * self.args.scale))})
        try:
            return suites.collect(self.plain, scaled, path, self.args.seed)
        except sides.Abandoned:
            return [], "there was no time"

    # ---- one piece -----------------------------------------------------------------------------

    def pair(self, entry, ids, in_turn):
        run = work.run_program if "commands" in entry else lambda side, suite: work.run_tests(side, suite, ids)
        return sides.both([lambda: run(self.plain, entry), lambda: run(self.cuwhy, entry)], in_turn)

    def first(self, entry, ids):
        """Both sides once; what differs is unclear until it ran again."""
        plain, cuwhy = self.pair(entry, ids, self.args.in_turn)
        tests = list(dict.fromkeys([*plain, *cuwhy]))
        odd = [test for test in tests if plain.get(test) != cuwhy.get(test)]
        if not odd and plain.ends != cuwhy.ends:
            odd = [END]
        fine = [t for t in tests if t not in odd and plain[t].startswith(("passed", "status 0"))]
        took = {t: [side.seconds.get(t, 0) for side in (plain, cuwhy)] for t in fine}
        result = {"suite": entry["name"], "outcomes": {t: compare.kind_of(plain[t]) for t in tests if t in plain},
                  "seconds": [sum(pair[side] for pair in took.values()) for side in (0, 1)], "process": [plain.ran, cuwhy.ran],
                  "first": took[fine[0]] if fine else [0, 0],     # with the start of CUDA in it
                  "slower": [[t, *took[t]] for t in sorted(took, key=lambda t: took[t][0] - took[t][1])[:SLOWER]],
                  "odd": [{"id": t, "found": UNCLEAR, "plain": [], "cuwhy": []} for t in odd],
                  "said": [plain.said, cuwhy.said] if odd or "commands" in entry and not fine else []}
        note(result["odd"], plain, cuwhy)
        return result

    def again(self, entry, ids, odd):
        """Runs what differed again, in turn: half of the GPU's memory cannot be had twice."""
        alone = [[o] for o in odd if o["id"] in ids]
        groups = alone if len(alone) <= ALONE else [sum(alone, [])]
        rest = [o for o in odd if o["id"] not in ids]       # the collection of a file, or the end of the process
        for group in groups + ([rest] if rest else []):
            for _ in range(AGAIN):
                note(group, *self.pair(entry, ids if group is rest else [o["id"] for o in group], True))
        if any(compare.judge(o["plain"], o["cuwhy"]) in ("once", "timing") for o in odd):   # perhaps it needs company
            note(odd, *self.pair(entry, ids, True))
        for o in odd:
            o["found"] = compare.judge(o["plain"], o["cuwhy"])

    def do(self, key):
        """What came of a piece; saved before anything runs again, which can take longer than the first time."""
        piece = self.state.data["pieces"][key]
        entry, ids = self.entries[piece["suite"]], piece["ids"]
        result = self.state.data["done"].get(key) or self.first(entry, ids)
        self.state.finish(key, result)
        odd = [o for o in result["odd"] if o["found"] == UNCLEAR]
        if odd:
            self.again(entry, ids, odd)
            self.state.finish(key, result)
        return result

    # ---- all of them ---------------------------------------------------------------------------

    def one(self, key):
        if self.clock.closing():
            return
        began = time.monotonic()
        try:
            result = self.do(key)
        except sides.Abandoned:
            return
        except Exception:       # a mistake of ours must not look like "nothing differs"
            self.say("wild: %s: %s" % (key, traceback.format_exc()))
            self.failed = True
            return
        lines = ["[%3d/%d %4.0f s] %s: %d tests, %.0f s" % (len(self.state.data["done"]), len(self.state.data["pieces"]), self.clock.passed(),
                                                       key, len(result["outcomes"]), time.monotonic() - began)]
        for odd in result["odd"]:
            lines += ["    %s: %s" % (odd["found"], odd["id"])]
            lines += ["        %s: %s" % (side, short(text)) for side in ("plain", "cuwhy") for text in odd[side]]
        self.say("\n".join(lines))

    def work(self):
        self.failed = False
        left = [key for key in self.state.left() if self.state.data["pieces"][key]["suite"] in self.entries]
        random.Random(self.args.seed).shuffle(left)
        entry = {key: self.entries[self.state.data["pieces"][key]["suite"]] for key in left}
        left.sort(key=lambda key: ("commands" not in entry[key], not entry[key].get("slow")))     # the longest first
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for future in [pool.submit(self.one, key) for key in left]:
                future.result()
        self.state.data["seconds"] += self.clock.passed()
        self.state.save()


def note(odd, plain, cuwhy):
    """Adds the outcomes of a pair to those already known of each odd test."""
    for one in odd:
        for name, side in (("plain", plain), ("cuwhy", cuwhy)):
            ends = ", ".join(side.ends)
            one[name].append(ends if one["id"] == END else side.get(one["id"], "not run: " + ends))


def short(text):
    line = text.strip().replace("\n", " | ")
    return line if len(line) < 200 else line[:197] + "..."


def ratio(pairs):
    plain, cuwhy = (sum(pair[side] for pair in pairs) for side in (0, 1))
    return "%.3f" % (cuwhy / plain) if plain else "-"


def later(result):
    """The seconds of a piece without its first test, in which CUDA starts."""
    return [every - first for every, first in zip(result["seconds"], result.get("first", [0, 0]))]


def table(data):
    """Rows by suite, programs together, and a sum; {verdict: how many}."""
    groups = {}
    for key, piece in data["pieces"].items():
        name = "programs" if piece["suite"] == key else piece["suite"]
        groups.setdefault(name, []).append((piece, data["done"].get(key)))
    head = ["", "tests", "passed", "skipped", *FOUND, "not run", "time", "later", "process"]
    rows, sums = [head], dict.fromkeys(FOUND, 0)
    for name, members in [*groups.items(), ("all", [m for group in groups.values() for m in group])]:
        done = [result for _, result in members if result]
        kinds = [kind for result in done for kind in result["outcomes"].values()]
        found = [odd["found"] for result in done for odd in result["odd"]]
        counts = {verdict: found.count(verdict) for verdict in FOUND}
        counts["same"] = len(kinds) - sum(1 for result in done for odd in result["odd"] if odd["id"] in result["outcomes"])
        counts["same"] += found.count("same")
        rows.append([name, len(kinds), sum(k in ("passed", "status 0") for k in kinds), kinds.count("skipped"), *(counts[v] for v in FOUND),
                     sum(len(piece["ids"]) for piece, result in members if not result),
                     ratio([r["seconds"] for r in done]), ratio([later(r) for r in done]), ratio([r["process"] for r in done])])
        if name == "all":
            sums = counts
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
    text = "\n".join("  ".join(str(cell).rjust(w) if i else str(cell).ljust(w) for i, (cell, w) in enumerate(zip(row, widths))) for row in rows)
    dumb = [row[0] for row in rows[1:-1] if row[1] and row[2] + row[3] < row[1] / 2]
    if dumb:
        text += "\n\nwild: most tests fail without cuwhy as well, so they say little: %s" % ", ".join(dumb)
    return text, sums


def arguments():
    parser = argparse.ArgumentParser(description="other people's suites, with and without cuwhy")
    parser.add_argument("--wild", required=True, help="folder with the sources of the suites and programs")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="pairs of processes at a time")
    parser.add_argument("--seconds", type=float, default=86400, help="start nothing new after this time; --resume goes on")
    parser.add_argument("--seed", type=int, default=14, help="which tests are taken from large suites, and their order")
    parser.add_argument("--scale", type=float, default=1.0, help="take so many times the tests that suites.json says")
    parser.add_argument("--in-turn", action="store_true", help="plain first, then cuwhy: times that neighbors disturb less")
    parser.add_argument("--out", default=None, help="JSON file (BUILD/wild.json)")
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has, run the rest")
    parser.add_argument("--gpu", help="the simulated GPU, to test this test: sim:tiny")
    parser.add_argument("--cuwhy-options", default="", help="more options for cuwhy run")
    parser.add_argument("--suites", default=os.path.join(HERE, "suites.json"))
    parser.add_argument("--programs", default=os.path.join(HERE, "programs.json"))
    parser.add_argument("--list", action="store_true", help="only count the tests that would run")
    parser.add_argument("names", nargs="*", help="only suites and programs whose name contains one of these")
    args = parser.parse_args()
    args.out = os.path.abspath(args.out or os.path.join(args.build, "wild.json"))
    if shutil.which(args.python) is None or not os.path.isdir(args.wild):
        parser.error("there is no '%s'" % (args.wild if shutil.which(args.python) else args.python))
    return args


def main():
    args = arguments()
    harness = Harness(args, Clock(args.seconds))
    try:
        harness.prepare()
        if not args.list:
            harness.work()
    finally:
        shutil.rmtree(harness.setup.scratch, ignore_errors=True)
    text, sums = table(harness.state.data)
    ran = bool(harness.state.data["done"])
    print("\n%s\n\nwild: %s; everything is in %s" % (text, "%d differ because of cuwhy" % sums["differs"] if ran else "nothing was run", args.out))
    if not args.list and (harness.failed or not ran):
        return 2
    return 1 if sums["differs"] else 130 if harness.clock.interrupted else 2 if sums[UNCLEAR] else 0


if __name__ == "__main__":
    sys.exit(main())
