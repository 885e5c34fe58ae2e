# SPDX-License-Identifier: Apache-2.0
"""The programs and the builds of cuwhy that the soak uses, in BUILD/tests/soak."""
import glob
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(ROOT, "tests/e2e/programs")


def compile_c(*argv):
    subprocess.run(os.environ.get("CC", "gcc").split() + ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", *argv], check=True, cwd=ROOT)


def is_current(path):
    """Newer than every file of the recorder: building it with sanitizers takes a minute."""
    sources = [f for pattern in ("src/recorder/*", "include/cuwhy/*", "kb/*.def", "tests/torture/*")
               for f in glob.glob(os.path.join(ROOT, pattern))]
    return os.path.exists(path) and os.path.getmtime(path) > max(map(os.path.getmtime, sources))


class Place:
    """Where everything is. `cuwhy` by kind of build: plain, ubsan (the recorder ends the program at undefined behavior) and,
    if it was built, asan (everything but the recorder)."""

    def __init__(self, build, scratch, sanitizers=True):
        self.folder = os.path.join(build, "tests", "soak")
        self.sim = os.path.join(build, "sim")
        self.small = os.path.join(self.folder, "small")
        self.actor = os.path.join(self.folder, "actor")
        os.makedirs(self.small, exist_ok=True)
        compile_c("-Wall", "-Wextra", os.path.join(HERE, "actor.c"), "-o", self.actor, "-ldl", "-lpthread")
        compile_c("-shared", "-fPIC", os.path.join(HERE, "plugin.c"), "-o", os.path.join(self.folder, "plugin.so"), "-ldl")
        compile_c("-shared", "-fPIC", os.path.join(PROGRAMS, "small_driver.c"), "-Wl,-soname,libcuda.so.1", "-o",
                  os.path.join(self.small, "libcuda.so.1"))
        self.cuwhy, self.rings = {"plain": self.copy(build, scratch, "plain", os.path.join(build, "libcuwhy-rec.so"))}, {}
        if sanitizers:
            self.add_sanitizers(build, scratch)

    def copy(self, build, scratch, kind, recorder):
        """A build may take place meanwhile: hours are long."""
        folder = os.path.join(scratch, kind)
        os.mkdir(folder)
        for path in (os.path.join(build, "cuwhy"), os.path.join(build, "cuwhy-probe"), recorder):
            shutil.copy(path, folder)
        for name in ("sim", "lib32"):
            shutil.copytree(os.path.join(build, name), os.path.join(folder, name))
        return os.path.join(folder, "cuwhy")

    def add_sanitizers(self, build, scratch):
        self.cuwhy["ubsan"] = self.copy(build, scratch, "ubsan", self.with_traps())
        asan = os.path.join(ROOT, "build-san", "cuwhy")
        if os.path.exists(asan):
            self.cuwhy["asan"] = asan
        self.rings = {what: self.build_rings(what) for what in ("thread", "address,undefined")}

    def with_traps(self):
        """A recorder that needs no sanitizer's runtime, which would have to be loaded first."""
        folder = os.path.join(self.folder, "ubsan")
        recorder = os.path.join(folder, "libcuwhy-rec.so")
        subprocess.run(["make", "--no-print-directory", "-j2", "B=" + folder, "SAN=", recorder,
                        "CFLAGS=-O1 -g -fsanitize=undefined -fsanitize-undefined-trap-on-error"],
                       check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        return recorder

    def build_rings(self, what):
        """The recorder's tables, used by many threads under a sanitizer."""
        path = os.path.join(self.folder, "rings-" + what.split(",")[0])
        if not is_current(path):
            subprocess.run(["sh", "tests/torture/tsan.sh", what, path], check=True, cwd=ROOT)
        return path
