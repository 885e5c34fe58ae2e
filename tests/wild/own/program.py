# SPDX-License-Identifier: Apache-2.0
"""A program for check.py: prints what differs in any two runs, and with an argument what differs under cuwhy."""
import os
import sys
import time

print("process %d took %.3f s, see %s" % (os.getpid(), time.perf_counter(), os.environ["TMPDIR"]))
if len(sys.argv) > 1:
    with open("/proc/self/maps", encoding="ascii") as stream:
        print("a guest" if "libcuwhy-rec" in stream.read() else "alone")
