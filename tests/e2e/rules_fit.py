# SPDX-License-Identifier: Apache-2.0
"""`cuwhy fit` and its runs of one program, which must be comparable."""
import os

import harness
from toolbox import same

# As the module in a program does, it tells how many optimizer steps it took.
PROGRAM = """
import ctypes, os, sys
import cudrv
torch = ctypes.CDLL(os.environ["FAKE_TORCH"])
torch.block_made.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_int]
cudrv.init()
size = int(os.environ.get("SIZE", 2 << 20))
torch.block_made(cudrv.alloc(size), size, 1, 0)
with open(os.environ["CUWHY_FIT_STOPPED"], "a") as told:
    told.write('{"took": 300}\\n')
with open(sys.argv[1], "a") as seen:
    print(os.environ.get("CUWHY_FIT_MOST"), file=seen)
"""


def fit(box, *words, **env):
    seen = os.path.join(box.scratch, "seen")
    env = box.env(FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"), CUWHY_WRITES_MODE="real", **env)
    run = harness.Run([box.cuwhy, "fit", "--gpu", "1GiB", *words, "--", *box.script(PROGRAM), seen, "{}"], env)
    with open(seen, encoding="utf-8") as said:
        return run, said.read().split()


def rule__what_the_first_run_did_ends_the_others_and_no_clock(box):
    """Else one run of a program that rises would be cut short on a busy machine, and another one not: their answers differ."""
    run, runs = fit(box, "--vary", "n=1..8")
    same(run.status, 0, "status of " + run.out + run.err)
    assert len(runs) > 1 and runs[0] == "None" and set(runs[1:]) == {"300"}, runs


def rule__where_writes_are_real_nothing_is_tried_and_that_is_said(box):
    left_out = "what would make it fit was not tried: its writes are real"
    run, runs = fit(box, SIZE=str(2 << 30))
    same((run.status, len(runs), left_out in run.err), (1, 1, True), run.out + run.err)
    run, runs = fit(box, "--no-remedies", SIZE=str(2 << 30))
    same((run.status, left_out in run.err), (1, False), run.out + run.err)
    run, runs = fit(box)
    same((run.status, left_out in run.err), (0, False), run.out + run.err)
