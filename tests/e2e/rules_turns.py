# SPDX-License-Identifier: Apache-2.0
"""Which turn of which loops an event belongs to: exactly what the program itself counts, or said to be inexact."""
import json
import os

from rules_recorder import find_pythons
from toolbox import HERE, Skip, same

PROGRAM = os.path.join(HERE, "programs", "turns.py")
LIBRARY = os.path.join(HERE, "site-packages", "trainer.py")

# Styles whose turns no iterator tells. Those of the second line may also be counted wrong, and are then not said to be exact:
# nothing at all changes from one turn to the next, or they go from a place to one further on; nothing shows the first calls.
ABOUT = {"while_counter", "while_true_break", "while_nested", "while_in_while", "while_unpacks", "while_in_while_between", "for_in_while", "over_a_generator", "in_a_generator", "loader", "epochs_over_a_loader",
         "walrus", "chained", "progress_bar", "asynchronous"}
OFF = {"while_nothing_changes", "while_try_except", "mapped", "mapped_with_locals", "mapped_over_a_generator"}
CALLS = {"map", "map-locals", "map-generator"}    # C code that repeats: its first calls are not known to be a loop
FIRST_CALLS = 2


def loop_lines():
    """Where each loop of the program begins: {name: (file, line)}."""
    lines = {}
    for path in (PROGRAM, LIBRARY):
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        for n, line in enumerate(text.splitlines(), 1):
            if "# loop " in line:
                lines[line.split("# loop ")[1].strip()] = (os.path.basename(path), n)
        if 'MATCH = """' in text:
            inner = text.split('MATCH = """')[1].split('"""')[0]
            for n, line in enumerate(inner.splitlines(), 1):
                if "# loop " in line:
                    lines[line.split("# loop ")[1].strip()] = ("<match>", n)
    lines["exec"] = ("<executed>", 9001)
    return lines


def kept_turns(box, run):
    """{address: {(file, line): (turn, exact)}} of the live blocks."""
    kept = {}
    for line in box.peek(run, "turns"):
        address, *loops = line.split()
        loops = [loop.rsplit(":", 3) for loop in loops]
        kept[int(address)] = {(os.path.basename(file), int(at)): (int(turn), how.startswith("exact"))
                              for file, at, turn, how in loops}
    return kept


def compare(block, want, got, version):
    """What is wrong with one block, or None."""
    style = block["style"]
    for name, turn in block["turns"]:
        file, line = want[name]
        found = got.get((file, line))
        if not found and version == "3.9":      # no instruction has the line of `while True`
            found = got.get((file, line + 1))
        if not found and name in CALLS and turn <= FIRST_CALLS:
            continue
        if not found:
            return "%s: loop %s at line %d is not known: %s" % (style, name, line, got)
        if found[0] != turn and (found[1] or style not in OFF):
            return "%s: turn %d of loop %s is recorded as %s" % (style, turn, name, found)
        if not found[1] and style not in ABOUT | OFF and version in ("3.9", "3.10", "3.11"):
            return "%s: turn %d of loop %s is not said to be exact" % (style, turn, name)
    return None


def rule__every_turn_of_every_style_of_loop_is_the_programs_own(box):
    pythons = {v: p for v, p in find_pythons().items() if v != "3.14"}
    if not pythons:
        raise Skip("no python3.9 to python3.13 here")
    want = loop_lines()
    for version, python in sorted(pythons.items()):
        out = os.path.join(box.scratch, "said")
        run = box.under([python, PROGRAM, out], FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
        same(run.status, 0, "%s: status (%s)" % (version, run.err[-800:]))
        kept = kept_turns(box, run)
        with open(out, encoding="utf-8") as stream:
            blocks = [json.loads(line) for line in stream]
        assert len({block["style"] for block in blocks}) >= 50, "%s: too few styles" % version
        wrong = [compare(block, want, kept[block["address"]], version) for block in blocks]
        wrong = [text for text in wrong if text]
        assert not wrong, "%s: %d of %d blocks: %s" % (version, len(wrong), len(blocks), wrong[:4])


FAILS = """
import cudrv
cudrv.init()
keep = []


def step():
    keep.append(cudrv.alloc(4 << 20))


for epoch in range(3):
    for batch in range(400):
        step()
"""


def rule__the_turn_that_ran_out_of_memory_is_known(box):
    run = box.under(box.script(FAILS))
    verdict = box.verdict(run)
    line = 1 + [n for n, text in enumerate(FAILS.splitlines()) if "for batch" in text][0]
    same((verdict["turn"]["number"], verdict["turn"]["exact"], verdict["turn"]["library"]), (16, True, False), "turn")
    assert verdict["turn"]["loop"].endswith("program.py:%d" % line), verdict["turn"]
    said = [e["text"] for e in verdict["evidence"] if "iteration 16" in e["text"]]
    assert said and "in iteration 1 of the loop at " in said[0], verdict["evidence"]


LAUNCHES = """
import cudrv
cudrv.init()
nop, n = cudrv.kernel("nop"), 0


def step(number):
    cudrv.launch(nop, (number,), (1,))


for epoch in range(5):
    for batch in range(7):
        n += 1
        step(n)
        if batch % 3 == 0:
            n += 1
            cudrv.launch(nop, (n,), (1,))
    n += 1
    step(n)
step(n + 1)
"""


def rule__launches_have_their_turns_too(box):
    run = box.under(box.script(LAUNCHES))
    same(run.status, 0, "status")
    lines = {name: n for n, text in enumerate(LAUNCHES.splitlines(), 1) for name in ("epoch", "batch") if "for %s in" % name in text}
    want = []
    for epoch in range(5):
        outer = "%d:%d" % (lines["epoch"], epoch + 1)
        for batch in range(7):
            want += [["%d:%d" % (lines["batch"], batch + 1), outer]] * (2 if batch % 3 == 0 else 1)
        want.append([outer])
    want.append([])
    got = {int(number): loops for number, *loops in (line.split() for line in box.peek(run, "launch-turns"))}
    same([got[number] for number in range(1, len(want) + 1)], want, "turns of the launches")


def rule__no_turns_are_told_outside_of_loops(box):
    run = box.under(box.script("import cudrv\ncudrv.init()\ncudrv.alloc(1 << 40)\n"))
    assert "turn" not in box.verdict(run), box.verdict(run)["turn"]
