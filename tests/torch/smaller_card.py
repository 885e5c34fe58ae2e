#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A smaller card out of a larger one: a real GPU, limited for one process without a change to the program.

    tests/torch/smaller_card.py [--build build] [--gib 8]          is it as small as it should be on this machine's GPU? 0: yes
    tests/torch/smaller_card.py --simulated                        the same with a simulated GPU in the place of the real one

The limit is a libcuda.so.1 of ours in LD_LIBRARY_PATH (smaller_card.c) that hands everything on to the driver, and refuses what would bring the memory
in use on the card above the limit. What is in use is the driver's own figure: the context's memory, modules and workspaces count. A process that holds
the rest of the card would do the same to the program, but not to cuwhy, which would rightly blame it; and several such programs could not follow
each other with cards of different sizes. One program has the card at a time (memory.one_at_a_time): they import PyTorch side by side.

A simulated card of 8 GiB and a real one that is limited to 8 GiB leave a new process nearly the same; `less` makes it exactly the same: it is what a new
process with a context and nothing else has in use in the real one, less what it has in the simulated one.

On an H200 (driver 580.159.04) cuBLAS refuses to start beside such a library (CUBLAS_STATUS_INTERNAL_ERROR): only programs without matrix products could be tried.
"""
import argparse
import atexit
import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import memory  # noqa: E402
GIB = 1 << 30
# What a process with a context and nothing else sees.
FREE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, free, total = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print(free.value, total.value)
"""
CHECK = """
import json, torch
total = torch.cuda.get_device_properties(0).total_memory
free, total_asked = torch.cuda.mem_get_info()
kept = []
try:
    while True:
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError as error:
    said = str(error)
del kept[0]
torch.cuda.empty_cache()
torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")      # NVIDIA's libraries must work as well
print(json.dumps({"total": total, "total_asked": total_asked, "free": free, "got": (len(kept) + 1) * 64, "said": said}))
"""


def names(build):
    done = subprocess.run(["nm", "-D", "--defined-only", os.path.join(build, "sim", "libcuda.so.1")], capture_output=True, text=True, check=True)
    return sorted(line.split()[2] for line in done.stdout.splitlines() if line.split()[1] == "T")


def library(build):
    """The folder of the library, which is built if it is not there for this source: a machine with a GPU need not have a compiler."""
    source = os.path.join(HERE, "smaller_card.c")
    with open(source, "rb") as file:
        folder = os.path.abspath(os.path.join(build, "smaller_card", hashlib.sha256(file.read()).hexdigest()[:12]))
    made = os.path.join(folder, "libcuda.so.1")
    if not os.path.exists(made):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "names.h"), "w", encoding="ascii") as out:
            out.writelines("NAME(%d, %s)\n" % row for row in enumerate(names(build)))
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "-I", folder, "-o", made + ".new", source, "-ldl"],
                       check=True)
        os.rename(made + ".new", made)
    return folder


def driver():
    """The driver that a program of this machine gets."""
    ctypes.CDLL("libcuda.so.1")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return re.search(r"(/\S*libcuda\.so\S*)", maps.read()).group(1)


class Card:
    """How to start programs on this machine's GPU, made smaller. `simulated`: one of 140 GiB stands for it, under `cuwhy run`."""

    def __init__(self, build, simulated=False, turns=None):
        self.build, self.simulated, self.less = os.path.abspath(build), simulated, 0
        self.folder, self.turns = library(build), turns     # the folder by which they take turns
        self.driver = self.rehearsal() if simulated else driver()

    def rehearsal(self):
        """The stand-ins, with the limit in the place of the driver, which has another name there."""
        sim, self.stage = os.path.join(self.build, "sim"), tempfile.mkdtemp(prefix="cuwhy-smaller-")
        atexit.register(shutil.rmtree, self.stage)
        os.mkdir(os.path.join(self.stage, "libs"))
        for file in os.listdir(sim):
            os.symlink(os.path.join(self.folder if file == "libcuda.so.1" else sim, file), os.path.join(self.stage, "libs", file))
        path = os.path.join(self.stage, "driver.so")
        shutil.copy(os.path.join(sim, "libcuda.so.1"), path)
        return path

    def words(self, options, command):
        """What runs the command under `cuwhy run`; without options, and on a real GPU, without it."""
        if self.simulated:
            return [os.path.join(self.build, "cuwhy"), "run", "--gpu", "sim:h200", *options, "--", "env",
                    "CUWHY_SIM_LIBS=" + os.path.join(self.stage, "libs"), *command]
        return [os.path.join(self.build, "cuwhy"), "run", *options, "--", *command] if options else list(command)

    def env(self, total):
        env = dict(os.environ, CUWHY_TEST_CARD="%d:%d" % (total, self.less), CUWHY_TEST_DRIVER=self.driver)
        if not self.simulated:
            env["LD_LIBRARY_PATH"] = os.pathsep.join([self.folder] + [p for p in [env.get("LD_LIBRARY_PATH")] if p])
        if self.turns:
            memory.one_at_a_time(env, self.turns)
        return env

    def run(self, total, command, options=(), timeout=600, cwd=None):
        return subprocess.run(self.words(list(options), command), env=self.env(total), cwd=cwd, capture_output=True, text=True, errors="replace",
                              timeout=timeout, check=False)

    def free(self, total):
        done = self.run(total, [sys.executable, "-c", FREE])
        if done.returncode:
            sys.exit("smaller_card: cannot ask the GPU: " + done.stderr.strip())
        return int(done.stdout.split()[-2])

    def equal(self, total, free):
        """From now on, a new process has as much free as it has on the card that is to be compared. Returns the difference that there was."""
        self.less = 0
        self.less = free - self.free(total)
        return self.less


def add_arguments(parser):
    parser.add_argument("--real", action="store_true", help="on this machine's GPU, made smaller")
    parser.add_argument("--rehearse", action="store_true", help="as --real, with a simulated GPU in the place of the real one")
    parser.add_argument("--torch", help="folder that has PyTorch (default: with --real, what python3 finds, else the wheel of check.py)")


def set_torch(args):
    """Whether there is a PyTorch; why not is printed."""
    if not args.torch and not args.real:
        import check
        args.torch, why = check.install("2.11.0")
        if why:
            print("SKIPPED: PyTorch cannot be installed: %s" % why)
            return False
    if args.torch:
        os.environ["PYTHONPATH"] = args.torch
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--gib", type=float, default=8)
    parser.add_argument("--simulated", action="store_true")
    args = parser.parse_args()
    if args.simulated:
        import check
        os.environ["PYTHONPATH"] = check.install("2.11.0")[0]
    card, total, flaws = Card(args.build, args.simulated), int(args.gib * GIB), []
    print("driver %s; a new process has %.1f of %.1f MiB free" % (card.driver, card.free(total) / 2 ** 20, total / 2 ** 20), flush=True)
    for options in ((), ("--no-core-dump", "-f", "--out", "/tmp/smaller_card.out")):
        done = card.run(total, [sys.executable, "-c", CHECK], options)
        found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
        print(" ".join(["cuwhy run", *options] if options else ["without cuwhy"]) + ":", found or done.stderr[-2000:])
        if not found or not found["total"] == found["total_asked"] == total or not 0 <= found["free"] - found["got"] * 2 ** 20 < 64 << 20:
            flaws.append(options)
    print("not as small as it should be" if flaws else "as small as it should be")
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main())
