#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the Python package: PYTHONPATH=python CUWHY_PROGRAM=build/cuwhy run.py [NAME...], a name being part of
FILE.CLASS.TEST. With mypy, its types as well."""

import importlib.util
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def types_hold():
    if importlib.util.find_spec("mypy") is None:
        print("python: the types were not checked, there is no mypy")
        return True
    package = [os.path.join(ROOT, "python", "cuwhy")]
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *package], check=False).returncode == 0


def main():
    os.chdir(ROOT)
    sys.path.insert(0, HERE)
    os.environ.setdefault("CUWHY_WRITES_MODE", "real")     # programs tell the tests by files
    # the environment must not affect the tests
    for name in ("LD_PRELOAD", "CUWHY_SOCK", "CUDA_VISIBLE_DEVICES"):
        os.environ.pop(name, None)
    loader, names = unittest.defaultTestLoader, sys.argv[1:]
    loader.testNamePatterns = ["*%s*" % name for name in names] or None
    suite = loader.discover(HERE, "test_*.py")
    result = unittest.TextTestRunner(stream=open(os.devnull, "w"), verbosity=0).run(suite)
    for case, text in result.failures + result.errors:
        print(f"not ok - {case}\n{text}")
    for case, why in result.skipped:
        print(f"ok - {case} # SKIP {why}")
    bad = len(result.failures) + len(result.errors)
    print(f"python: {result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
    return 0 if bad == 0 and result.testsRun and (names or types_hold()) else 1


if __name__ == "__main__":
    sys.exit(main())
