# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: the verdict in the report of a test that failed with a CUDA error."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

from helpers import ILLEGAL, OOM, PROGRAM, environment

TESTS = f"""
import pytest

def test_fine():
    pass

def test_no_memory():
    raise RuntimeError({OOM!r})

def test_other():
    assert 1 == 2

def test_illegal():
    raise RuntimeError({ILLEGAL!r})

def test_after_it():
    raise RuntimeError({ILLEGAL!r})

@pytest.mark.xfail
def test_expected():
    raise RuntimeError({ILLEGAL!r})

@pytest.fixture
def gpu():
    raise RuntimeError({OOM!r})

def test_fixture(gpu):
    pass
"""


@unittest.skipUnless(importlib.util.find_spec("pytest"), "there is no pytest")
class Plugin(unittest.TestCase):
    def run_tests(self, *args, before=()):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "test_gpu.py"), "w", encoding="utf-8") as f:
                f.write(TESTS)
            return subprocess.run([*before, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "cuwhy.pytest_plugin",
                                   "--tb=short", *args], cwd=folder, env=environment(CUWHY_DIR=folder), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, universal_newlines=True, timeout=300)

    def section(self, out, test):
        """The report of one test."""
        return out.split(f" {test} ___", 1)[1].split("\n___", 1)[0].split("\n===", 1)[0]

    def test_sections(self):
        got = self.run_tests()
        self.assertIn("4 failed, 1 passed, 1 xfailed, 1 error", got.stdout)
        self.assertIn("(CUDA error 2)", self.section(got.stdout, "test_no_memory"))
        self.assertIn("---- cuwhy ----", self.section(got.stdout, "test_no_memory"))
        self.assertNotIn("cuwhy", self.section(got.stdout, "test_other"))
        self.assertIn("a kernel read or wrote outside its memory (CUDA error 700)", self.section(got.stdout, "test_illegal"))
        self.assertIn("(CUDA error 2)", self.section(got.stdout, "ERROR at setup of test_fixture"))

    def test_a_sticky_error_is_blamed_on_the_test_that_began_it(self):
        after = self.section(self.run_tests().stdout, "test_after_it")
        self.assertIn("CUDA error 700 again, first raised by test_gpu.py::test_illegal", after)

    def test_the_report_for_machines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.xml")
            self.run_tests(f"--junit-xml={path}", "-o", "junit_family=xunit1")
            with open(path, encoding="utf-8") as f:
                self.assertIn('name="cuwhy.cause" value="illegal-access-out-of-bounds"', f.read())

    def test_switched_off(self):
        got = self.run_tests("--no-cuwhy")
        self.assertIn("4 failed", got.stdout)
        self.assertNotIn("---- cuwhy ----", got.stdout)

    def test_under_run_it_adds_nothing(self):
        got = self.run_tests(before=(PROGRAM, "run", "--gpu", "sim:h200"))
        self.assertIn("4 failed", got.stdout)
        self.assertNotIn("---- cuwhy ----", got.stdout)


if __name__ == "__main__":
    unittest.main()
