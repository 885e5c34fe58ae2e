# SPDX-License-Identifier: Apache-2.0
# docs/examples/retry_batch.py on a card of 12 GB: with and without the recorder, it goes on with a batch that fits, near the largest.
# expect-note: cause=oom-capacity exit=0
# needs: torch
# gpu: sim:rtx3060
import gc
import os
import runpy
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(root, "python"))
import cuwhy

found = {}
for recorder in (True, False):
    assert cuwhy.under_run() == recorder
    names = runpy.run_path(os.path.join(root, "docs", "examples", "retry_batch.py"))
    found[recorder] = names["found"]
    step, torch = names["step"], names["torch"]
    cuwhy._program._under = False
    # the functions of a module keep its model, and it them
    if recorder:
        del names, step
    gc.collect()
# how the cache is cut up depends on addresses, which differ from run to run: by one or two of 58
least = min(found.values()) * 9 // 10
for batch, runs in ((least, True), (2 * found[True], False)):
    try:
        step(batch)
        assert runs, batch
    except torch.OutOfMemoryError:
        assert not runs, batch
    torch.cuda.empty_cache()
try:
    step(64)
except torch.OutOfMemoryError as e:
    exact = cuwhy.fits(e, batch=64, step=step, timeout=300)
assert exact.exact and least <= exact < 2 * least and least <= found[True] < 2 * least, (found, exact)
print("a batch of %d, %d without the recorder; the largest is %d" % (found[True], found[False], exact))
