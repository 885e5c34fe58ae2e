# SPDX-License-Identifier: Apache-2.0
"""tools/mine_messages.py on a small package: every form of a message, in Python and in C++, with its holes and its place."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "mine_messages.py")
EXPECTED = """
raise RuntimeError launch.py:12 plain words about CUDA
raise ValueError launch.py:14 on device {device}: shape {shape} at {index} goes on
raise RuntimeError launch.py:16 driver {version} is too old for CUDA {version}
raise MemoryError launch.py:18 GPU {index} has only {n} left
raise LookupError launch.py:21 no GPU with {version} found
assert AssertionError launch.py:22 GPU kernel got {n} tensors
warn UserWarning launch.py:23 a {{brace}} of the GPU
log error launch.py:24 NCCL gave up after {n} steps
raise RuntimeError sub/check.cpp:5 expected a CUDA tensor, but got one on {device}!
raise IndexError sub/check.cpp:7 GPU {device} is out of range
raise OutOfMemoryError sub/check.cpp:8 no memory for {bytes} (a, b) "quoted"
warn UserWarning sub/check.cpp:9 slow GPU kernel
raise RuntimeError sub/check.cpp:10 cuBLAS failed: {name}
log error sub/check.cpp:11 NCCL of rank {index} stopped
""".strip().split("\n")


def main():
    done = subprocess.run([sys.executable, TOOL, "package=" + os.path.join(HERE, "package")], capture_output=True, text=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    found = [" ".join((kind, name, place, text)) for kind, name, _, _, place, text in rows]
    for line in sorted(set(EXPECTED) - set(found)):
        print("messages: not found: " + line)
    for line in sorted(set(found) - set(EXPECTED)):
        print("messages: not expected: " + line)
    good = set(found) == set(EXPECTED) and done.returncode == 0
    print("messages: %d of %d messages of a small package" % (len(set(EXPECTED) & set(found)), len(EXPECTED)))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
