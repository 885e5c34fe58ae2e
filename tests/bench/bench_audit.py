# SPDX-License-Identifier: Apache-2.0
"""What the recorder's audit hook adds to a Python audit event: run under cuwhy, before and after CUDA starts."""
import ctypes
import sys
import time

EVENTS, ROUNDS = 300000, 9


def per_event():
    """Nanoseconds; the fastest of several rounds, since noise only adds time."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(EVENTS):
            sys.audit("bench.event", 1)
        best = min(best, time.perf_counter() - begin)
    return best / EVENTS * 1e9


before = per_event()
ctypes.PyDLL("libcuda.so.1").cuInit(0)
after = per_event()
print("## One audit event of Python\n\n%.0f ns with the hook, %.0f ns without\n" % (after, before))
