#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package with the real frameworks: run.py --build BUILD [--torch FOLDER] [--frameworks FOLDER] [NAME ...].

PyTorch on the simulated GPU: the one of `make check-torch`, unless --torch names another; or with --real this Python's own, on the real GPU. Lightning, Transformers, IPython and pytest come from PyPI into a folder
of their own (get.py). Where PyTorch or they cannot be had, the tests are skipped, and say so."""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(HERE, "programs")
MIB = 1 << 20


class Skip(Exception):
    pass


def marked(program, mark="here"):
    with open(os.path.join(PROGRAMS, program), encoding="utf-8") as f:
        return next(n for n, line in enumerate(f, 1) if line.rstrip().endswith("# <- " + mark))


class Box:
    def __init__(self, args):
        self.args, self.cuwhy = args, os.path.join(os.path.abspath(args.build), "cuwhy")

    def run(self, *argv, gpu="sim:rtx3060", folder=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY")}
        env.update(PYTHONPATH=os.pathsep.join([os.path.join(ROOT, "python"), self.args.frameworks, self.args.torch or ""]).rstrip(os.pathsep),
                   CUWHY_PROGRAM=self.cuwhy, PYTHONDONTWRITEBYTECODE="1", HF_HUB_OFFLINE="1", NO_COLOR="1", CUWHY_DIR=folder or "/nowhere",
                   IPYTHONDIR=folder or "/nowhere", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        before = [] if self.args.real else [self.cuwhy, "run", "--gpu", gpu, "--out", os.path.join(folder, "recording"), "--"]
        return subprocess.run([*before, sys.executable, *argv], env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, timeout=600, check=False)

    def needs(self, module):
        if not self.args.real and not os.path.isdir(os.path.join(self.args.torch or "/nowhere", "torch")):
            raise Skip(f"there is no PyTorch: {self.args.why}")
        if not os.path.isdir(os.path.join(self.args.frameworks, module)):
            raise Skip(f"there is no {module}: tests/frameworks/get.py could not get it")


def expect(words, text):
    assert words in text, f"'{words}' is not in:\n{text}"


def logged(box, folder, program, module, times):
    """The error leaves the training, and the callback has logged and written the verdict."""
    box.needs(module)
    out = os.path.join(folder, "out")
    got = box.run(os.path.join(PROGRAMS, program), out, folder=folder)
    assert got.returncode == 0, got.stdout
    said = re.findall(r"^raised (oom-\S+)", got.stdout, re.M)
    assert len(said) == times and f" {marked(program)}" in got.stdout.split("raised", 1)[1], got.stdout
    written = glob.glob(os.path.join(out, "**", "cuwhy-verdict.*"), recursive=True)
    assert sorted(os.path.splitext(p)[1] for p in written) == [".json", ".txt"], written
    with open([p for p in written if p.endswith(".txt")][0], encoding="utf-8") as f:
        expect("cuwhy: ", f.read())
    expect("CUDA error 2", got.stdout)


def test_lightning_logs_the_verdict(box, folder):
    logged(box, folder, "lightning_oom.py", "lightning", 1)


def test_the_trainer_of_transformers_logs_the_verdict(box, folder):
    logged(box, folder, "trainer_oom.py", "transformers", 2)


def test_magics_in_ipython(box, folder):
    box.needs("IPython")
    got = box.run(os.path.join(PROGRAMS, "notebook.py"), folder=folder)
    assert got.returncode == 0, got.stdout
    cells = re.split(r"^(?=-- [%i])", re.sub(r"\x1b\[[0-9;]*m", "", got.stdout), flags=re.M)[1:]
    load, enable, now, measured, fine, oom, other, words, unload, gone = cells
    assert load == "-- %load_ext cuwhy\n-- ok\n", load
    assert enable.startswith("-- import") and enable.endswith("\n-- ok\n") and enable.count("\n") == 2, enable
    expect("PyTorch has used no GPU memory", now)
    expect("the cell needed 96.0 MiB, and keeps 64.0 MiB", measured)
    expect("64.0 MiB  ", measured)
    expect("-- ok", measured)
    expect("67108864", fine)
    assert oom.count("OutOfMemoryError: ") == 1 and "-- failed: CellFailed" in oom, oom
    assert oom.count("(CUDA error 2)") == 1 and oom.index("Error: ") < oom.index("(CUDA error 2)"), oom
    expect("AttributeError", other)
    expect("-- failed: ValueError", words)
    expect("-- ok", unload)
    assert "-- ok" not in gone and "%%cuwhy" in gone, gone


def test_a_limit_on_the_memory_of_a_test(box, folder):
    box.needs("pytest")
    got = box.run("-m", "pytest", "-p", "no:cacheprovider", "-p", "cuwhy.pytest_plugin", "--strict-markers", "-q", "--tb=short",
                  os.path.join(PROGRAMS, "test_limits.py"), folder=folder)
    expect("4 failed, 3 passed, 1 skipped", got.stdout)
    report = {name: got.stdout.split(f" {name} __", 1)[1].split("\n____", 1)[0] for name in
              ("test_beyond", "test_sizes_are_decimal", "test_fixtures_count", "test_other_failures_stay")}
    expect("the test needed 100.0 MiB of memory on GPU 0, and the limit is 64.0 MiB", report["test_beyond"])
    expect("(not counted: 64.0 MiB that earlier tests left)", report["test_beyond"])
    expect("what held memory at the peak, 164.0 MiB in all:", report["test_beyond"])
    expect("test_limits.py:", report["test_beyond"])
    expect("62.0 MiB of memory", report["test_sizes_are_decimal"])
    expect("the test needed 100.0 MiB", report["test_fixtures_count"])
    expect("assert", report["test_other_failures_stay"])


def test_a_limit_that_cannot_be_checked_is_said(box, folder):
    box.needs("pytest")
    with open(os.path.join(folder, "test_none.py"), "w", encoding="utf-8") as f:
        f.write("import pytest\n\n\n@pytest.mark.limit_gpu_memory('2 GB')\ndef test_no_gpu():\n    pass\n\n\n"
                "@pytest.mark.limit_gpu_memory('much')\ndef test_bad():\n    pass\n")
    got = box.run("-m", "pytest", "-p", "no:cacheprovider", "-p", "cuwhy.pytest_plugin", "-q", "test_none.py", folder=folder)
    expect("limit_gpu_memory was not checked: PyTorch used no GPU", got.stdout)
    expect("'much' is not a size", got.stdout)


def main():
    parser = argparse.ArgumentParser(description="the Python package with the real frameworks")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--torch", help="a folder with PyTorch")
    parser.add_argument("--frameworks", default=os.path.join(ROOT, "build", "frameworks"))
    parser.add_argument("--real", action="store_true", help="on the real GPU, without the recorder")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.frameworks = os.path.abspath(args.frameworks)
    args.why = "--torch names a folder without it"
    if not args.torch and not args.real:
        sys.path.insert(0, os.path.join(ROOT, "tests", "torch"))
        import check
        args.torch, args.why = check.install("2.11.0")
    failed = passed = skipped = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or (args.names and not any(n in name for n in args.names)):
            continue
        with tempfile.TemporaryDirectory(prefix="cuwhy-frameworks-") as folder:
            try:
                test(Box(args), folder)
                passed += 1
                print(f"ok - {name}", flush=True)
            except Skip as why:
                skipped += 1
                print(f"ok - {name} # SKIP {why}", flush=True)
            except Exception as e:  # a broken test is a failed one
                failed += 1
                print(f"not ok - {name}\n{e}", flush=True)
    print(f"frameworks: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
