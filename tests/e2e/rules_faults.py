# SPDX-License-Identifier: Apache-2.0
"""The comparison with compute-sanitizer and with the driver's assertion lines, which tests/gpu/faults.py
makes on a real GPU: that it reads them correctly, and that it can fail."""
import os
import sys

from toolbox import same

GPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu")
sys.path.append(GPU)
import memcheck  # noqa: E402

REPORTS = """
========= COMPUTE-SANITIZER
start 1024.0
========= Invalid __global__ write of size 4 bytes
=========     at fill(float *, long long, float)+0x70
=========     by thread (64,0,0) in block (3,1,0)
=========     Access to 0x7f4e00001100 is out of bounds
=========     and is 4,398,046,507,265 bytes after the nearest allocation at 0x7f4e00000000 of size 2,097,152 bytes
========= 
========= Invalid __global__ read of size 16 bytes
=========     at void at::native::<unnamed>::gather<(int)4, float>(T2 *, const T2 *)+0x120 in Gather.cu:31
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f4e00200004 is misaligned
=========     and is inside the nearest allocation at 0x7f4e00200000 of size 512 bytes
=========     Device Frame: outer(float *)+0x40
========= 
========= Invalid __local__ write of size 4 bytes
=========     at 0xd80 in source.cu:162:void ns::walk<float>(float *)
=========     by thread (1,2,3) in block (4,5,6)
=========     Access at 0xfffff0 is out of bounds
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to x.
=========     Saved host backtrace up to driver entry point at error
========= ERROR SUMMARY: 3 errors
"""
ASSERTS = """
../aten/src/ATen/native/cuda/Loss.cu:255: nll_loss_forward: block: [0,0,0], thread: [17,0,0] Assertion `t >= 0 && t < n_classes` failed.
Traceback (most recent call last):
k.cu:9: operator(): block: [2,0,0], thread: [3,1,0] Assertion `i < n && "too `far` away"` failed.
"""


def fault(**more):
    found = {"block": [3, 1, 0], "thread": [64, 0, 0], "address": "0x7f4e00001100"}
    found.update(more)
    return {"kernel": {"name": "fill(float*, long long, float)"}, "fault": found}


def rule__reports_of_the_sanitizer_are_read(box):
    reports = memcheck.parse(REPORTS)
    same(len(reports), 3, "reports that name a thread")
    same([[memcheck.short_name(k) for k in r.kernels] for r in reports],
         [["fill"], ["gather", "outer"], ["walk"]], "kernels")
    same([(r.block, r.thread, r.address) for r in reports],
         [([3, 1, 0], [64, 0, 0], 0x7f4e00001100), ([0, 0, 0], [0, 0, 0], 0x7f4e00200004),
          ([4, 5, 6], [1, 2, 3], 0xfffff0)], "places")
    same(tuple(reports[0].nearest), ("after", 4398046507265, 0x7f4e00000000, 2097152), "nearest")
    same((reports[1].nearest.side, reports[2].nearest), ("inside", None), "nearest of the others")
    same(memcheck.parse("no report\n========= ERROR SUMMARY: 0 errors\n"), [], "nothing")


def rule__assertion_lines_of_the_driver_are_read(box):
    found = memcheck.assertions(ASSERTS)
    same([(a.line, a.function, a.block, a.thread) for a in found],
         [(255, "nll_loss_forward", [0, 0, 0], [17, 0, 0]), (9, "operator()", [2, 0, 0], [3, 1, 0])], "lines")
    same(found[1].condition, 'i < n && "too `far` away"', "condition")
    same(memcheck.same_function({"kernel": {"name": "void ns::nll_loss_forward<float>(float*)"}}, found), True, "kernel")
    same(memcheck.same_function(fault(), found), None, "a function that the kernel calls")


def rule__a_verdict_is_compared_with_the_sanitizer(box):
    reports = memcheck.parse(REPORTS)
    same(memcheck.same_kernel(fault(), reports), True, "kernel")
    same(memcheck.same_kernel({"kernel": {"name": "refill(float*)"}}, reports), False, "another kernel")
    same(memcheck.same_kernel(fault(), []), None, "nothing to compare")
    same(len(memcheck.with_thread(fault(), reports)), 1, "the thread")
    same(memcheck.with_thread(fault(thread=[65, 0, 0]), reports), [], "another thread")
    for address, word in (("0x7f4e00001100", "yes"), ("0x7e0000001100", "offset"), ("0x7e0000103100", "page"),
                          ("0x7e0000001104", ""), (None, None)):
        same(memcheck.address_match(fault(address=address), reports[:1]), word, "address %s" % address)
    moved = fault(address="0x6000abc1100", memory={"segment": {"address": "0x6000abc0000", "size": 2097152}})
    same(memcheck.address_match(moved, reports[:1]), "yes", "the same place in an allocation elsewhere")
    moved["fault"]["memory"]["segment"]["size"] = 4096
    assert memcheck.address_match(moved, reports[:1]) != "yes", "another allocation"


def rule__every_planted_fault_says_what_it_expects(box):
    import harness
    cases = harness.load_cases(os.path.join(GPU, "faults"), (".py",), [])
    files = [n for n in os.listdir(os.path.join(GPU, "faults")) if n.endswith(".py")]
    same(len(cases), len(files), "programs with a header")
    assert len(cases) >= 25, len(cases)
    for case in cases:
        wanted = "note" if case.notes else "here"
        assert case.silent or case.marks.get(wanted), case.name + " marks no line"
