#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/gpu/cases, tests/gpu/memory and docs/examples on a real GPU under cuwhy and checks every verdict.

    tests/gpu/run.py [--build build] [-j N] [--quick] [--json FILE] [--artifacts DIR] [name…]

A name is part of a case's name. Without a GPU or PyTorch everything is skipped, with a message.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import harness  # noqa: E402
import report  # noqa: E402

PROBE = """
import ctypes, importlib.util as u
print(" ".join(m for m in ("torch", "cupy", "triton", "numpy", "transformers", "lightning") if u.find_spec(m)))
try:
    cuda, n = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
    ok = cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(n)) == 0
except OSError:
    ok = False
print(n.value if ok else 0)
# can kernels use ordinary host memory (HMM, ATS)? 88 is the driver's number of that attribute
hmm = ctypes.c_int(0)
ok = ok and n.value and cuda.cuDeviceGetAttribute(ctypes.byref(hmm), 88, 0) == 0
print(hmm.value if ok else 0)
"""


def find_tool(name):
    """A program of the CUDA toolkit, which need not be in PATH; None if it is not installed."""
    for place in (shutil.which(name), "/usr/local/cuda/bin/" + name):
        if place and os.access(place, os.X_OK):
            return place
    return None


def what_is_missing(python):
    """The `needs` words that this machine does not meet."""
    found = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=120)
    lines = found.stdout.splitlines() + ["", "0", "0"]
    missing = {"torch", "cupy", "triton", "numpy", "transformers", "lightning"} - set(lines[0].split())
    devices = int(lines[1])
    if devices == 0:
        missing.add("GPU")
    if devices != 1:
        missing.add("single-GPU")
    if lines[2] != "0":
        missing.add("private-host-memory")
    nvcc = find_tool("nvcc")
    if nvcc:
        os.environ["NVCC"] = nvcc
    else:
        missing.add("nvcc")
    return missing


def arguments():
    parser = argparse.ArgumentParser(description="cuwhy on a real GPU")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("names", nargs="*", help="run only cases whose name contains one of these")
    parser.add_argument("-j", type=int, default=min(8, os.cpu_count() or 1), dest="jobs")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--quick", action="store_true",
                        help="run without cuwhy too only where the output is compared")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--artifacts", help="leave what failing cases printed in this folder")
    return parser.parse_args()


def main():
    args = arguments()
    cases = [case for folder in ("cases", "memory", "../../docs/examples")
             for case in harness.load_cases(os.path.join(HERE, folder), (".py", ".sh"), args.names)]
    for case in cases:
        case.needs += ["GPU"]
    missing = what_is_missing(args.python)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.join(HERE, "..", "..", "python"), os.environ.get("PYTHONPATH")]))
    runner = harness.Harness(os.path.join(args.build, "cuwhy"), args.python, missing,
                             plain=not args.quick)
    results = harness.run_all(runner, cases, args.jobs, report.report_line)
    report.print_table(results)
    return report.finish(results, args.json, args.artifacts)


if __name__ == "__main__":
    sys.exit(main())
