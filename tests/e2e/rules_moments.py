# SPDX-License-Identifier: Apache-2.0
"""`cuwhy memory --at TIME`: exact with a memory trace, what the timeline holds without one."""
import glob
import json
import os

from rules_blocks import START, line_of
from rules_oom import adds_up, memory
from toolbox import same

MIB = 1 << 20
# a mark is a moment at which nothing happens for a while
STORY = START + """
import time
marks = []


def mark():
    time.sleep(0.03)
    marks.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    time.sleep(0.03)


mark()
torch.reserve(20 << 20, 0)
torch.block_made(segment, 2 << 20, 1, 0)  # <- first
mark()
torch.block_made(segment + (4 << 20), 8 << 20, 1, 0)  # <- second
other = cudrv.alloc(3 << 20)
mark()
torch.block_freed(segment + (4 << 20), 8 << 20, 1, 0)
cudrv.free(other)
mark()
print(*marks, flush=True)
"""


def told(box, program, *options, **env):
    """The recording, and the marks as times since the start of the process."""
    run = box.under(box.script(program), *options, FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"), **env)
    start = box.parts(run)[0]["clock0.mono_ns"]
    return run, ["%.6fs" % ((int(mark) - start) / 1e9) for mark in run.out.split()]


def at(box, run, when):
    answer = memory(box, "--json", "--at", when, run.folder)
    same((answer.returncode, answer.stderr), (0, ""), "status and stderr")
    ledger = json.loads(answer.stdout)["devices"][0]
    same(ledger["at"], "time", "moment")
    same(sum(ledger["parts"].values()), ledger["total"], "the parts of the card")
    return ledger


def figures(ledger):
    lines = sorted((x["line"], x["bytes"]) for x in ledger["lines"] if x["part"] == "tensors")
    return ledger["allocated"], ledger["reserved"], ledger["parts"]["other_libraries"], lines


def rule__with_a_memory_trace_every_moment_is_exact(box):
    run, marks = told(box, STORY, "--memory-trace")
    same(run.status, 0, "status")
    first, second = (line_of(STORY, "first"), 2 * MIB), (line_of(STORY, "second"), 8 * MIB)
    want = [(0, 0, 20 * MIB, []), (2 * MIB, 20 * MIB, 0, [first]), (10 * MIB, 20 * MIB, 3 * MIB, [first, second]),
            (2 * MIB, 20 * MIB, 0, [first])]
    for when, expected in zip(marks, want):
        ledger = at(box, run, when)
        same((figures(ledger), ledger["exact"]), (expected, True), "at " + when)
        adds_up(ledger)
    shown = memory(box, "--at", marks[2], run.folder)
    assert ":%d" % second[0] in shown.stdout and "after the start" in shown.stdout, shown.stdout


def rule__times_begin_with_the_program(box):
    """Not with its first use of CUDA, which may be long after it."""
    late = "import time\nbegan = time.clock_gettime_ns(time.CLOCK_MONOTONIC)\ntime.sleep(0.2)\n" + START + "print(began)\n"
    run, marks = told(box, late, "--memory-trace")
    assert 0 < float(marks[0][:-1]), marks
    same(at(box, run, marks[0])["parts"]["other_libraries"], 0, "before CUDA was used")
    answer = json.loads(memory(box, "--json", "--at", "end", run.folder).stdout)
    assert answer["devices"][0]["timeline"][0][0] >= 0.2, answer["devices"][0]["timeline"][0]


def rule__a_killed_program_has_its_moments_too(box):
    """Nothing marks the end, but the rate of the clock is still known."""
    run, marks = told(box, STORY + "os.kill(os.getpid(), 9)\n", "--memory-trace")
    same(run.status, 137, "status")
    same([at(box, run, when)["allocated"] for when in marks], [0, 2 * MIB, 10 * MIB, 2 * MIB], "tensors")


def rule__without_a_trace_the_timeline_answers(box):
    run, marks = told(box, STORY)
    ledger = at(box, run, marks[2])
    same((ledger["exact"], ledger["lines"]), (False, []), "no lines")
    same((ledger["allocated"], ledger["reserved"]), (10 * MIB, 20 * MIB), "sums")
    shown = memory(box, "--at", marks[2], run.folder).stdout
    assert "lines are not known at that time" in shown and "--memory-trace" in shown, shown


def rule__a_trace_that_is_gone_is_told_of(box):
    run, marks = told(box, STORY, "--memory-trace")
    path = glob.glob(os.path.join(run.folder, "*.cwm"))[0]
    for damage in (lambda: open(path, "w").close(), lambda: os.remove(path)):
        damage()
        answer = memory(box, "--at", marks[2], run.folder)
        same(answer.returncode, 0, "status")
        assert "the memory trace was not used" in answer.stderr, answer.stderr
        assert "lines are not known at that time" in answer.stdout, answer.stdout


def rule__times_outside_the_run_are_refused(box):
    run, _ = told(box, STORY)
    answer = memory(box, "--at", "10h", run.folder)
    same((answer.returncode, answer.stdout), (2, ""), "status")
    assert "it ended" in answer.stderr and "after its start" in answer.stderr, answer.stderr
    answer = memory(box, "--at", "yesterday", run.folder)
    same(answer.returncode, 2, "status")
    assert "--at takes oom, peak, end or a time, not 'yesterday'" in answer.stderr and "12.5s" in answer.stderr, answer.stderr
    same(memory(box, "--at", "0s", run.folder).returncode, 0, "the start itself")
