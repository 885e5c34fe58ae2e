#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does run.py see what it should? A suite of our own, on the simulated GPU: tests/wild/check.py BUILD"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import compare  # noqa: E402
import suites  # noqa: E402

BUILD = "build"
FOUND = {
    "test_is_flaky_without_cuwhy": "flaky", "test_fails_once_under_cuwhy": "once", "test_hangs_once_under_cuwhy": "timing",
    "test_crashes_once_under_cuwhy": "differs", "test_sees_the_recorder": "differs", "test_has_a_random_message": "same",
    "program-guest": "differs"}
OUTCOMES = {
    "test_passes": "passed", "test_fails": "failed", "test_is_skipped": "skipped", "test_passes_before": "passed", "test_crashes": "crashed",
    "test_passes_in_a_child": "passed", "test_fails_in_a_child": "failed", "test_crashes_in_a_child": "crashed", "test_leaves": "status 3", "test_hangs": "timed out", "test_passes_after": "passed", "program-alike": "status 0"}


def run(out, *more):
    own = os.path.join(HERE, "own")
    command = [sys.executable, os.path.join(HERE, "run.py"), "--wild", HERE, "--build", BUILD, "--gpu", "sim:tiny", "--out", out, "--jobs", "3",
               "--suites", os.path.join(own, "suites.json"), "--programs", os.path.join(own, "programs.json"), *more]
    return subprocess.run(command, capture_output=True, text=True)


class Wild(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="wild-check-")
        cls.out = os.path.join(cls.folder.name, "wild.json")
        cls.first = run(cls.out, "program")
        cls.second = run(cls.out, "--resume")
        with open(cls.out, encoding="utf-8") as stream:
            cls.data = json.load(stream)
        cls.said = cls.first.stdout + cls.first.stderr + cls.second.stdout + cls.second.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each_difference_is_told_by_its_kind(self):
        odd = [o for result in self.data["done"].values() for o in result["odd"]]
        self.assertEqual({o["id"].rpartition("::")[2]: o["found"] for o in odd}, FOUND, self.said)

    def test_outcomes_are_known_also_after_a_crash_and_a_hang(self):
        same = {t.rpartition("::")[2]: kind for result in self.data["done"].values() for t, kind in result["outcomes"].items()}
        self.assertEqual({t: same.get(t) for t in OUTCOMES}, OUTCOMES, self.said)

    def test_a_difference_of_ours_is_the_status(self):
        self.assertEqual((self.first.returncode, self.second.returncode), (1, 1), self.said)

    def test_resume_runs_only_what_is_left(self):
        self.assertNotIn("] program", self.second.stdout)
        self.assertIn("] own", self.second.stdout)

    def test_what_there_is_no_time_for_waits_for_resume(self):
        out = os.path.join(self.folder.name, "late.json")
        done = run(out, "--seconds", "0", "own")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        data = suites.load(out)
        self.assertEqual((len(data["pieces"]), data["done"]), (3, {}))

    def test_what_cannot_run_is_said(self):
        self.assertIn("left out: alien: the Python has no no_such_package", self.second.stdout)
        self.assertIn("sparse-checkout set tests", self.second.stdout)


class Judge(unittest.TestCase):
    def test_an_outcome_that_only_cuwhy_has_twice_is_ours_though_the_test_is_flaky(self):
        self.assertEqual(compare.judge(["passed", "failed: a", "passed"], ["failed: b", "failed: b", "passed"]), "differs")

    def test_another_error_counts_as_a_failure_does(self):
        self.assertEqual(compare.judge(["failed: 710"] * 3, ["failed: 719"] * 3), "differs")

    def test_a_flaky_outcome_of_both_is_flaky(self):
        self.assertEqual(compare.judge(["passed", "failed: a", "passed"], ["failed: a"] * 3), "flaky")

    def test_addresses_times_and_sizes_do_not_count(self):
        texts = ["at 0x7f12 in process %d after %s: 1.5 GiB free, /tmp/%s/x" % v for v in ((12, "3 ms", "a"), (13, "4.5 ms", "b"))]
        self.assertEqual(*(compare.normal(text) for text in texts))
        self.assertNotEqual(compare.normal("error 710"), compare.normal("error 719"))


class Sample(unittest.TestCase):
    def test_every_function_is_taken_before_a_second_variant(self):
        ids = ["f::a[%d]" % i for i in range(100)] + ["f::b", "f::c"]
        taken = suites.sample(ids, 4, 1)
        self.assertEqual((len(taken), taken[-2:]), (4, ["f::b", "f::c"]))

    def test_the_same_seed_takes_the_same(self):
        ids = ["f::t%d" % i for i in range(50)]
        self.assertEqual(suites.sample(ids, 7, 3), suites.sample(ids, 7, 3))

    def test_pieces_lose_nothing(self):
        ids = [str(i) for i in range(101)]
        cut = suites.pieces({"piece": 25}, ids)
        self.assertEqual((sum(cut, []), max(map(len, cut)) <= 25), (ids, True))

    def test_the_lists_are_whole(self):
        listed = suites.load(os.path.join(HERE, "suites.json"))
        entries = listed["suites"] + suites.load(os.path.join(HERE, "programs.json"))["programs"]
        self.assertEqual([e["name"] for e in entries if e["folder"] not in listed["sources"]], [])
        self.assertEqual(len({e["name"] for e in entries}), len(entries))
        self.assertGreaterEqual(sum(sum(e.get("files", {}).values()) for e in entries), 1500)


def main():
    global BUILD
    parser = argparse.ArgumentParser(description="tests of tests/wild/run.py")
    parser.add_argument("build", nargs="?", default="build")
    BUILD = os.path.abspath(parser.parse_args().build)
    if importlib.util.find_spec("pytest") is None:
        print("wild: skipped, there is no pytest")
        return 0
    loaded = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        result = unittest.TextTestRunner(stream=nowhere, verbosity=0).run(loaded)
    for case, text in result.failures + result.errors:
        print("not ok - %s\n%s" % (case, text))
    bad = len(result.failures) + len(result.errors)
    print("wild: %d passed, %d failed" % (result.testsRun - bad, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
