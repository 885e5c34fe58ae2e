# SPDX-License-Identifier: Apache-2.0
"""`cuwhy memory A B`: which lines hold more, what is new, and the exit status for CI."""
import json
import os
import re

from rules_blocks import START, line_of
from rules_moments import MIB, told
from rules_oom import PIECES, memory
from toolbox import same

BEFORE = START + """
torch.reserve(20 << 20, 0)


def step(size):
    torch.block_made(segment, size << 20, 1, 0)  # <- grows
    torch.block_made(segment + (10 << 20), 1 << 20, 1, 0)  # <- stays


step(2)
torch.block_made(segment + (12 << 20), 1 << 20, 1, 0)  # <- gone
"""
# `step` begins two lines further down, and another line is new
AFTER = BEFORE.replace("\n\ndef step", "\n\n# one\n# two\ndef step").replace("step(2)", "step(6)").replace(
    "torch.block_made(segment + (12 << 20), 1 << 20, 1, 0)  # <- gone",
    "\n\n\ndef fresh():\n    torch.block_made(segment + (14 << 20), 3 << 20, 1, 0)  # <- new\n\n\nfresh()")


def pair(box, *options):
    """The folders of two recordings: of a program, and of what became of it."""
    before, after = (os.path.join(box.scratch, name) for name in ("before", "after"))
    for program, folder in ((BEFORE, before), (AFTER, after)):
        os.rename(told(box, program, *options)[0].folder, folder)
    return before, after


def compared(box, *args, status=0):
    answer = memory(box, "--json", *args)
    same((answer.returncode, answer.stderr), (status, ""), "status and stderr")
    return json.loads(answer.stdout)


def change(device, line):
    return [c for c in device["changes"] if c.get("line") == line]


def rule__two_recordings_show_which_lines_hold_more(box):
    before, after = pair(box)
    device, = compared(box, before, after)["compared"]
    same((device["held_before"], device["held_after"], device["growth"]), (4 * MIB, 10 * MIB, 6 * MIB), "sums")
    grew, = change(device, line_of(AFTER, "grows"))
    same((grew["before"], grew["after"], grew["growth"], grew["new"], grew["was_line"]),
         (2 * MIB, 6 * MIB, 4 * MIB, False, line_of(BEFORE, "grows")), "the line that grew, and moved with its function")
    new, = change(device, line_of(AFTER, "new"))
    same((new["new"], new["growth"], new["function"]), (True, 3 * MIB, "fresh"), "a new line")
    gone, = [c for c in device["changes"] if c["gone"]]
    same((gone["line"], gone["growth"]), (line_of(BEFORE, "gone"), -MIB), "a line that holds nothing now")
    same([c for c in device["changes"] if c.get("line") == line_of(AFTER, "stays")], [], "what did not change is left out")
    same([c["growth"] for c in device["changes"]], [4 * MIB, 3 * MIB, -MIB], "what grew most comes first")


def rule__the_text_names_each_line_in_full(box):
    before, after = pair(box)
    shown = memory(box, before, after)
    same((shown.returncode, shown.stderr), (0, ""), "status")
    for words in ("lines that hold more", ":%d in step" % line_of(AFTER, "grows"), "was line %d" % line_of(BEFORE, "grows"),
                  ":%d in fresh  NEW" % line_of(AFTER, "new"), "lines that hold less", "+4.0 MiB"):
        assert words in shown.stdout, (words, shown.stdout)
    shown = memory(box, "--by", "function", before, after)
    assert "functions that hold more" in shown.stdout and "step in " in shown.stdout, shown.stdout


def rule__growth_beyond_the_limit_is_status_1(box):
    before, after = pair(box)
    for limit, status in (("6MiB", 0), ("5MiB", 1), ("150%", 0), ("149%", 1), ("0%", 1)):
        answer = compared(box, "--max-growth", limit, before, after, status=status)
        same(answer["exceeded"], status == 1, limit)
    same(compared(box, "--max-growth", "0", after, before)["exceeded"], False, "less is not growth")
    same(compared(box, "--max-growth", "0", after, after)["compared"][0]["changes"], [], "the same one twice")
    answer = memory(box, "--max-growth", "much", before, after)
    same(answer.returncode, 2, "status")
    assert "--max-growth takes a size or a percentage, not 'much'" in answer.stderr, answer.stderr
    answer = memory(box, "--max-growth", "5%", before)
    same(answer.returncode, 2, "status")


MOMENTS = START + """
import time
marks = []


def mark():
    time.sleep(0.2)
    marks.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    time.sleep(0.2)


torch.reserve(20 << 20, 0)
torch.block_made(segment, 2 << 20, 1, 0)  # <- first
mark()
torch.block_made(segment + (4 << 20), 8 << 20, 1, 0)  # <- second
mark()
torch.block_freed(segment, 2 << 20, 1, 0)
print(*marks, flush=True)
"""


def moments_differ(box, *options):
    run, marks = told(box, MOMENTS, *options)
    device, = compared(box, "--at", ",".join(marks), run.folder)["compared"]
    same([(c["line"], c["before"], c["after"], c["new"]) for c in device["changes"]],
         [(line_of(MOMENTS, "second"), 0, 8 * MIB, True)], "what the second moment has and the first has not")
    device, = compared(box, "--at", "peak,end", run.folder)["compared"]
    same([(c["line"], c["growth"], c["gone"]) for c in device["changes"]], [(line_of(MOMENTS, "first"), -2 * MIB, True)],
         "peak and end")


def rule__two_moments_of_one_are_exact_with_a_trace(box):
    moments_differ(box, "--memory-trace")


def rule__two_moments_have_lines_without_a_trace_too(box):
    moments_differ(box)


def rule__a_moment_that_never_was_is_refused(box):
    run, marks = told(box, MOMENTS)
    answer = memory(box, "--at", "%s,10h" % marks[0], run.folder)
    same((answer.returncode, answer.stdout), (2, ""), "status")
    assert "it ended" in answer.stderr, answer.stderr


def rule__what_was_not_measured_before_has_not_grown_and_both_gpus_are_named(box):
    """How large the context is, NVML is asked only when memory runs out; before CUDA starts there is none."""
    before, after = (os.path.join(box.scratch, name) for name in ("before", "after"))
    os.rename(told(box, BEFORE, gpu="sim:h200")[0].folder, before)
    os.rename(told(box, PIECES)[0].folder, after)      # on a card that is too small
    page = os.path.join(box.scratch, "page.html")
    for first, second in ((before, after), (after, before)):
        shown = memory(box, "--page", page, first, second).stdout
        device, = compared(box, first, second)["compared"]
        names = [device[side]["name"] for side in ("before", "after")]
        assert names[0] != names[1] and ("H200" in names[0]) == (first == before), names
        assert "device 0, %s before, %s after\n" % tuple(names) in shown, shown
        context, = [line.split("CUDA context")[0].split() for line in shown.splitlines() if "CUDA context and modules" in line]
        same(context[:1] if first == before else context[-1:], ["-"], shown)
        assert "+" not in context and len(context) == 3, shown      # a size has two words
        with open(page, encoding="utf-8") as stream:
            text = stream.read()
        assert all(name in text for name in names), text[:2000]
        assert re.search("<tr>(<td class=n>[^<]*){2}<td class=n><td>CUDA context and modules", text), text
