# SPDX-License-Identifier: Apache-2.0
"""Programs in separate processes, with the stand-in for PyTorch."""

import os
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGE = os.path.join(ROOT, "python")
PROGRAM = os.environ["CUWHY_PROGRAM"]
FAKES = os.path.join(HERE, "fakes")

ILLEGAL = "CUDA error: an illegal memory access was encountered"
OOM = ("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.12 GiB is free. "
       "Including non-PyTorch memory, this process has 22.50 GiB memory in use. Of the allocated memory 14.00 GiB is "
       "allocated by PyTorch, and 8.00 GiB is reserved by PyTorch but unallocated.")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "CUWHY_SOCK", "FAKE_TORCH")}
    env.update(PYTHONPATH=os.pathsep.join([PACKAGE, FAKES]), PYTHONDONTWRITEBYTECODE="1", CUWHY_PROGRAM=PROGRAM, LC_ALL="C.UTF-8")
    env.update(more)
    return env


def python(code, *before, **more):
    """Runs `code`; what it wrote and its exit status."""
    command = [*before, sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300)
