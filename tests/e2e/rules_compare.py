# SPDX-License-Identifier: Apache-2.0
"""How tests/gpu/compare.py reads what tools print on a real GPU: that it can tell success from failure."""
import os
import pickle
import sys
import tempfile

import harness
from toolbox import same

GPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu")
before = sys.path[:]
sys.path.insert(0, GPU)
import compare  # noqa: E402
import compare_read  # noqa: E402
sys.path[:] = before        # tests/gpu has files of the same names as this folder

TRACEBACK = """Traceback (most recent call last):
  File "/x/{name}.py", line {line}, in fill
    {source}
  File "/x/site-packages/torch/a.py", line 3, in f
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
  File "/x/{name}.py", line 1, in this_is_not_a_frame
Traceback (most recent call last):
  File "cupy/driver.pyx", line 247, in unload
"""
SANITIZER = """========= Invalid __global__ write of size 8 bytes
=========     at put+0x100 in triton_store.py:13
=========     by thread (32,0,0) in block (0,0,0)
=========     Access to 0x8367f4800100 is out of bounds
"""
HOST = """=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernelEx in launcher.c:10 [0x2e80] in launcher.so
=========         Host Frame: run in jit.py:743
=========         Host Frame: fill in triton_store.py:{line}
=========         Host Frame: <module> in triton_store.py:23
"""
ASSERT = 'a.cu:16: vectorized_gather_kernel: block: [141,0,0], thread: [12,0,0] Assertion `i < n && "index out of bounds"` failed.\n'
CUWHY = """cuwhy: a kernel read or wrote outside its memory (CUDA error 700)

  WHERE  tests/gpu/faults/{name}.py:{line} in fill()
         {source}
  WHAT   kernel put
         block (0,0,0) thread (0,0,0) wrote 8 bytes at 0x82faabe00000, and 127 more threads
"""


def truth_of(name):
    for path, asked, kernel, why, inside in compare.PROGRAMS:
        if path.endswith("/" + name):
            return compare_read.Truth(harness.Case(os.path.join(GPU, path + ".py")), asked, kernel, why, inside)
    raise AssertionError("compare.py has no program " + name)


def told(tool, text, name):
    found = compare_read.answers(tool, text, truth_of(name))
    return [found["line"]] + [question for question in compare.QUESTIONS[1:] if found.get(question) == "yes"]


def rule__every_program_of_the_comparison_has_its_marks(box):
    for path, *_ in compare.PROGRAMS:
        truth = truth_of(os.path.basename(path))
        assert truth.here or truth.culprit, path + " marks no guilty line"
    same(truth_of("triton_store").inside, [("triton_store.py", 13)], "the line inside the kernel")


def rule__tracebacks_are_read_to_the_innermost_line_of_the_user(box):
    guilty = truth_of("triton_store").here[0][1]
    source = 'put[(out.numel() // 256,)](out, offset, BLOCK=256)  # <- here'
    text = TRACEBACK.format(name="triton_store", line=guilty, source=source)
    same(told("plain", text, "triton_store"), ["yes"], "the guilty line; its source is not the kernel's name")
    same(told("plain", text.replace("line %d" % guilty, "line 24"), "triton_store"), ["other"], "an innocent line")
    same(told("plain", "no traceback", "triton_store"), ["none"], "nothing")
    text = TRACEBACK.format(name="graph_index", line=truth_of("graph_index").calls[0][1], source="graph.replay()")
    same(told("blocking", ASSERT + text, "graph_index"), ["call", "kernel", "thread", "why"], "the line that replays")


def rule__reports_of_other_tools_are_read(box):
    same(told("sanitizer", SANITIZER, "triton_store"), ["inside", "kernel", "thread", "address", "why"], "the sanitizer")
    later = TRACEBACK.format(name="triton_store", line=24, source="y = x + 1")
    for line, answer in ((17, "yes"), (20, "inside")):
        text = SANITIZER + HOST.format(line=line) + later
        same(told("sanitizer", text, "triton_store")[0], answer, "the line of its host frames, not that of the traceback")
    gdb = "CUDA Exception: Warp Illegal Address\n[Current focus set to CUDA kernel 0, grid 9, block (0,0,0), thread (64,0,0)]\n" \
          "#0  0x00007f in fill<<<(4,1,1),(256,1,1)>>> ()\n"
    same(told("core dump", gdb, "oob_far"), ["none", "kernel", "thread"], "cuda-gdb")


def rule__of_cuwhy_only_its_own_words_count(box):
    guilty = truth_of("triton_store").here[0][1]
    plain = TRACEBACK.format(name="triton_store", line=24, source="y = x + 1")
    words = CUWHY.format(name="triton_store", line=guilty, source="put[(out.numel() // 256,)](out, offset, BLOCK=256)  # <- here")
    same(told("cuwhy", plain + words, "triton_store"), ["yes", "kernel", "thread", "address", "why"], "all")
    same(told("cuwhy", plain, "triton_store"), ["none"], "cuwhy said nothing")
    same(told("cuwhy", words.replace(":%d" % guilty, ":24"), "triton_store")[0], "other", "a wrong line")


def rule__hints_for_every_lack_of_memory_are_no_reason(box):
    hint = "torch.OutOfMemoryError: CUDA out of memory. If reserved but unallocated memory is large try setting " \
           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation\n"
    same(told("plain", hint, "fragmentation"), ["none"], "the standing hint")
    same(told("cuwhy", "cuwhy: out of memory\n  WHY    74.0 GiB are gaps in 6,887 segments\n  kept by fragmentation.py:%d\n" %
              truth_of("fragmentation").culprit[0][1], "fragmentation"), ["yes", "why"], "a reason")


def rule__of_a_snapshot_the_line_that_holds_most_is_taken(box):
    def block(size, line, state="active_allocated"):
        return {"size": size, "state": state, "frames": [{"filename": "torch/x.py", "line": 1}, {"filename": "/a/p.py", "line": line}]}
    snapshot = {"segments": [{"blocks": [block(5, 7), block(6, 8), block(90, 9, "inactive")]}, {"blocks": [block(3, 7)]}]}
    with tempfile.NamedTemporaryFile() as file:
        pickle.dump(snapshot, file)
        file.flush()
        same(compare_read.heaviest_line(file.name, {"p.py"}), ("p.py", 7), "the heaviest")
        same(compare_read.heaviest_line(file.name, {"q.py"}), None, "none of the user's")


def rule__work_that_was_stopped_is_read_as_far_as_it_came(box):
    same(compare.read_work("launches 0.2 0.1 0.3\nsomething else\ntraining\n"), {"launches": 0.2}, "medians")
    times = {"plain": [{"launches": 1.0}, {"launches": 2.0}], "cuwhy": [{"launches": 1.5}, {}]}
    same(compare.ratio(times, "cuwhy", "launches"), "1.50 (1.50 to 1.50)", "rounds that have both")
    same(compare.ratio(times, "cuwhy", "training"), "-", "nothing to compare")
