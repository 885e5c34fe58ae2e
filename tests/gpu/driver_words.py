#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the real driver prints is kept, and the program's output stays what it is.

    tests/gpu/driver_words.py [--build build] [--python PYTHON]

Needs PyTorch and a GPU; what needs Triton or CuPy is skipped, aloud, without them. One line for each claim: PASS, FAIL or SKIP.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

INDEX = """
import torch
x = torch.randn(50, 4, device="cuda")
other = torch.zeros(1000, device="cuda")
bad = torch.arange(45, 55, device="cuda")
label = torch.tensor([1, 2], device="cuda")
torch.cuda.synchronize()
for _ in range(40):
    other = other * 2
torch.nn.functional.cross_entropy(torch.randn(2, 3, device="cuda"), label)
y = torch.gather(x, 0, label[:, None])
picked = x[bad]  # <- index
for _ in range(40):
    other = other + 1
torch.nn.functional.embedding(label, x)
print(picked.sum().item())
"""
LABEL = INDEX.replace("label = torch.tensor([1, 2]", "label = torch.tensor([1, 7]").replace("picked = x[bad]", "picked = x[label - label]")
SCATTER = INDEX.replace("picked = x[bad]  # <- index", "picked = torch.gather(x, 0, bad[:, None])  # <- index")
PLAIN = "import torch\nprint(torch.ones(3, device='cuda').sum().item())\n"
PRINTF = """
import cupy
say = cupy.RawKernel('extern "C" __global__ void say(int n) { printf("thread %d of %d\\\\n", threadIdx.x, n); }', "say")
say((2,), (8,), (5,))
cupy.cuda.Device().synchronize()
"""
CUPY = """
import cupy
check = cupy.RawKernel('#include <assert.h>\\nextern "C" __global__ void check(float *x, int n) { assert(threadIdx.x < n); }', "check")
touch = cupy.RawKernel('extern "C" __global__ void touch(float *x) { x[0] = 1; }', "touch")
x = cupy.zeros(64, dtype="float32")
cupy.cuda.Device().synchronize()
for _ in range(20):
    touch((1,), (1,), (x,))
check((1,), (64,), (x, 60))  # <- index
for _ in range(20):
    touch((1,), (1,), (x,))
cupy.cuda.Device().synchronize()
"""


class Claims:
    def __init__(self):
        self.failed = 0

    def claim(self, holds, words, told=""):
        self.failed += not holds
        print("%s  %s%s" % ("PASS" if holds else "FAIL", words, "" if holds else "  (%s)" % (told,)))


def line_of(text):
    return next((number for number, line in enumerate(text.splitlines(), 1) if "<- index" in line), None)


def imports_of_driver(claims):
    """Which functions that write the driver imports at all: for the facts, not a claim."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next((line.split()[-1] for line in maps if "libcuda.so" in line), None)
    found = subprocess.run(["sh", "-c", "readelf -W --dyn-syms %s | grep UND; readelf -Wd %s | grep -E 'FLAGS|RELRO'" % (path, path)], capture_output=True, text=True)
    names = sorted(set(re.findall(r"\b(\w*(?:printf|put[sc]|putchar|fwrite|write|writev)\w*)@", found.stdout)))
    print("NOTE  %s imports: %s" % (path, " ".join(names) or found.stderr.strip() or "nothing that readelf shows"))
    print("NOTE  %s" % " ".join(re.findall(r"FLAGS.*", found.stdout)))


class Machine:
    def __init__(self, build, python, folder):
        self.cuwhy, self.python, self.folder = os.path.join(build, "cuwhy"), python, folder
        self.peek = os.path.join(folder, "peek")
        subprocess.run(["cc", "-I" + os.path.join(ROOT, "include"), os.path.join(ROOT, "tests", "e2e", "peek.c"), "-o", self.peek], check=True)

    def plain(self, text):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return subprocess.run([self.python, path], capture_output=True, text=True)

    def under(self, text, *options):
        out = tempfile.mkdtemp(dir=self.folder)
        self.plain_path = os.path.join(self.folder, "program.py")
        with open(self.plain_path, "w", encoding="utf-8") as stream:
            stream.write(text)
        run = subprocess.run([self.cuwhy, "run", "--json", "--out", out, *options, "--", self.python, self.plain_path], capture_output=True, text=True)
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
            run.verdict = json.load(stream)
        run.words = []
        for name in sorted(os.listdir(out)):
            if name.endswith(".cwr"):
                run.words += subprocess.run([self.peek, os.path.join(out, name), "printed"], capture_output=True, text=True).stdout.splitlines()
        return run


def redirected(run):
    return max([int(line.split()[1]) for line in run.words if line.startswith("redirected")], default=0)


def kept(run, kind):
    return [line.split(" ", 5)[1:] for line in run.words if line.split(" ", 1)[0] == kind]


def assertion(claims, machine, name, text, options=("--no-core-dump",)):
    plain, run = machine.plain(text), machine.under(text, *options)
    told = [line for line in plain.stderr.splitlines() if "Assertion `" in line]
    now = [line for line in run.stderr.splitlines() if "Assertion `" in line and not line.startswith("{")]
    words = kept(run, "assertion")
    shape = lambda line: re.sub(r"\[\d+,\d+,\d+\]", "[]", line)
    claims.claim(bool(told), "%s: the driver prints the assertion" % name, plain.stderr[-300:])
    claims.claim({shape(line) for line in told} == {shape(line) for line in now}, "%s: standard error has the same lines under cuwhy" % name, now[:2])
    claims.claim({shape(w[-1]) for w in words} == {shape(line) for line in now}, "%s: they are in the recording" % name, run.words)
    claims.claim(sum(int(w[0]) for w in words) == len(now), "%s: as many threads as were printed (%d)" % (name, len(now)), words)
    claims.claim(run.returncode == plain.returncode, "%s: the same status" % name, (run.returncode, plain.returncode))
    if "--no-core-dump" in options:
        claims.claim((run.verdict["where"] or {}).get("line") == line_of(text), "%s: the line that launched it is named" % name,
                     (run.verdict["where"], [s["line"] for s in run.verdict["suspects"]]))
    said = ((run.verdict["fault"] or {}).get("assert") or {}).get("condition")
    claims.claim(bool(said) and any("`%s`" % said in line for line in now), "%s: the verdict has the condition" % name, said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    claims = Claims()
    try:
        import ctypes
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        print("SKIP  no driver here")
        return 0
    imports_of_driver(claims)
    with tempfile.TemporaryDirectory(prefix="cuwhy-words-") as folder:
        machine = Machine(os.path.abspath(args.build), args.python, folder)
        run = machine.under(PLAIN)
        if run.returncode:
            print("SKIP  PyTorch does not run here: %s" % run.stderr[-200:])
            return 0
        claims.claim(redirected(run) > 0, "references of the driver lead to the recorder (%d)" % redirected(run))
        claims.claim(run.stdout == machine.plain(PLAIN).stdout, "a program without a failure prints what it printed")
        assertion(claims, machine, "x[index]", INDEX)
        assertion(claims, machine, "gather", SCATTER)
        assertion(claims, machine, "label", LABEL.replace("  # <- index", "").replace("(2, 3, device=\"cuda\"), label)", "(2, 3, device=\"cuda\"), label)  # <- index"))
        assertion(claims, machine, "x[index] with a dump", INDEX, ())
        if subprocess.run([args.python, "-c", "import cupy"], capture_output=True).returncode:
            print("SKIP  no CuPy here")
        else:
            assertion(claims, machine, "CuPy", CUPY)
            plain, run = machine.plain(PRINTF), machine.under(PRINTF)
            claims.claim(run.stdout == plain.stdout and plain.stdout.count("\n") == 16, "printf in a kernel: the same output", run.stdout[:200])
            claims.claim(sum(int(w[0]) for w in kept(run, "other")) == 16 and len(kept(run, "other")) == 8, "printf in a kernel: kept, each line once", run.words)
    return 1 if claims.failed else 0


if __name__ == "__main__":
    sys.exit(main())
