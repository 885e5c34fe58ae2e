#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch on the simulated GPU: the programs of tests/gpu, with the verdicts that they have on a real one.

    tests/torch/check.py [--build build] [--torch 2.11.0] [--seconds 1200] [name…]

Installs one wheel of PyTorch without its requirements (the stand-ins take the place of NVIDIA's packages) into a folder of the
user's cache, once, and what PyTorch itself needs of PyPI's pure packages. When no registry answers it says so and exits with 0.
"""
import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import harness  # noqa: E402
import report  # noqa: E402

# what `import torch` needs; sympy and networkx are for torch.compile
BESIDE = ["numpy", "filelock", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec"]


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "cuwhy", "torch")


def pip(folder, words):
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--target", folder] + words,
                          capture_output=True, text=True)
    return done.returncode == 0, (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def install(version):
    """The folder with this PyTorch; None and the reason if it cannot be had."""
    folder = os.path.join(cache(), "%s-%d.%d" % (version, *sys.version_info[:2]))
    os.makedirs(cache(), exist_ok=True)
    # Several of us start at once where tests run in parallel: one installs, the others wait for it.
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "complete")):
            return folder, None
        return install_into(folder, version)


def install_into(folder, version):
    scratch = folder + ".new"
    shutil.rmtree(scratch, ignore_errors=True)
    print("check-torch: installing PyTorch %s into %s (about 1.2 GB)" % (version, folder), flush=True)
    for words in (["--no-deps", "torch==" + version], BESIDE):
        good, why = pip(scratch, words)
        if not good:
            shutil.rmtree(scratch, ignore_errors=True)
            return None, why
    with open(os.path.join(scratch, "complete"), "w", encoding="ascii"):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(scratch, folder)
    return folder, None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", default="2.11.0", help="version of the wheel (default: %(default)s)")
    parser.add_argument("--gpu", default="sim:h200", help="the simulated GPU (default: %(default)s)")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, dest="jobs")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--artifacts", help="leave what failing cases printed in this folder")
    parser.add_argument("names", nargs="*", help="run only cases whose name contains one of these")
    return parser.parse_args()


def cases(names):
    gpu = os.path.join(HERE, "..", "gpu")
    return [case for folder in (os.path.join(gpu, "cases"), os.path.join(gpu, "memory"), os.path.join(HERE, "cases"))
            if os.path.isdir(folder) for case in harness.load_cases(folder, (".py",), names)]


def missing(folder):
    """What a case may need that is not here: other packages, and what a simulated GPU does not have (cupti: records of kernels that ran)."""
    packages = {"cupy", "triton", "numpy", "transformers", "lightning", "bitsandbytes"}
    return {p for p in packages if not os.path.isdir(os.path.join(folder, p))} | {"nvcc", "cupti"}


def main():
    args = arguments()
    folder, why = install(args.torch)
    if not folder:
        print("check-torch: SKIPPED: PyTorch %s cannot be installed: %s" % (args.torch, why))
        return 0
    os.environ["PYTHONPATH"] = folder
    began = time.monotonic()
    runner = harness.Harness(os.path.join(args.build, "cuwhy"), sys.executable, missing(folder), default_gpu=args.gpu, plain=False)
    results = harness.run_all(runner, cases(args.names), args.jobs, report.report_line)
    report.print_table(results)
    print("%.0f s with PyTorch %s on %s" % (time.monotonic() - began, args.torch, args.gpu))
    return report.finish(results, args.json, args.artifacts)


if __name__ == "__main__":
    sys.exit(main())
