# SPDX-License-Identifier: Apache-2.0
# Two processes fail for different reasons, one after the other: the first is the verdict.
# expect: cause=oom-request-too-large exit=1
# expect-other: cause=device-ordinal-out-of-range
# needs: torch
import subprocess
import sys


def first():
    import torch
    torch.empty(1 << 42, device="cuda")  # <- here


def second():
    import torch
    torch.zeros(1, device="cuda")
    sys.stdin.read()
    torch.zeros(1, device="cuda:29")  # <- other


def main():
    later = subprocess.Popen([sys.executable, __file__, "second"], stdin=subprocess.PIPE)
    subprocess.run([sys.executable, __file__, "first"])
    later.communicate(b"")
    sys.exit(1 if later.returncode else 0)


{"first": first, "second": second}.get(sys.argv[-1], main)()
