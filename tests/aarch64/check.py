#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuwhy on aarch64, emulated: check.py BUILD ROOT [NAME...]. The cases of tests/e2e/cases, with the recorder, the simulated GPU and the
command line built for aarch64 and run by qemu-user; ROOT is what tests/aarch64/root.sh makes.

qemu runs one program: what this program starts is not emulated. So cases that start others are left out, and those that fork, where
qemu does not empty the pages of a child that are to be wiped (7.2 says that it does)."""
import os
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "..", "e2e")
sys.path.insert(0, E2E)
import harness  # noqa: E402
import report  # noqa: E402
import run as e2e  # noqa: E402

QEMU = shutil.which("qemu-aarch64-static") or "qemu-aarch64-static"
# a program that starts another one says so in its text
FORKS = re.compile(r"os\.fork\(\)")
STARTS = re.compile(r"subprocess|spawn|sys\.executable|forkserver|workers|os\.exec|posix_spawn")


class Emulated(harness.Harness):
    """Everything that is built for aarch64 is started by qemu."""

    def __init__(self, folder, root, **more):
        self.emulator = [QEMU, "-L", root]
        wrapper = os.path.join(folder, "cuwhy-emulated")
        with open(wrapper, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nexec %s -L "%s" "%s" "$@"\n' % (QEMU, root, os.path.join(folder, "cuwhy")))
        os.chmod(wrapper, 0o755)
        super().__init__(wrapper, os.path.join(root, "usr/bin/python3"), **more)

    def command(self, case):
        return self.emulator + super().command(case)


def machine_of(path):
    with open(path, "rb") as f:
        return struct.unpack_from("<H", f.read(20), 18)[0]


def text_of(case):
    """The program and its helpers."""
    text = ""
    for path in [case.path] + [os.path.join(os.path.dirname(case.path), name) for name in case.uses]:
        with open(path, encoding="utf-8") as f:
            text += f.read()
    return text


def wipes(builder, root):
    program = builder.compile(os.path.join(HERE, "wiped.c"), "wiped")
    return subprocess.run([QEMU, "-L", root, program]).returncode == 0


def main():
    build, root = (os.path.abspath(a) for a in sys.argv[1:3])
    os.environ["PYTHONPATH"] = os.path.join(E2E, "site-packages")
    for part in ("cuwhy", "libcuwhy-rec.so", "sim/libcuda.so.1"):
        if machine_of(os.path.join(build, part)) != 183:
            sys.exit("aarch64: %s is not built for it" % part)
    cases = harness.load_cases(os.path.join(E2E, "cases"), (".py", ".c"), sys.argv[3:])
    builder = e2e.Builder(build)
    reasons = [("they start other programs", lambda case, text: case.wrap or STARTS.search(text))]
    if not wipes(builder, root):
        reasons.append(("they fork, and this qemu does not wipe pages on fork", lambda case, text: FORKS.search(text)))
    for why, applies in reasons:
        left_out = [case for case in cases if applies(case, text_of(case))]
        cases = [case for case in cases if case not in left_out]
        print("aarch64: not run, %s: %s" % (why, " ".join(case.name for case in left_out)))
    runner = Emulated(build, root, default_gpu="sim:tiny", build=builder)
    results = harness.run_all(runner, cases, os.cpu_count() or 1, report.report_line)
    return report.finish(results, None, None)


if __name__ == "__main__":
    sys.exit(main())
