# SPDX-License-Identifier: Apache-2.0
"""Every recorded stack is the one that Python itself would have printed at that moment."""
import os

from rules_recorder import find_pythons
from toolbox import HERE, Skip, same

LEAST = 1500        # launches of one run; the ring of a thread holds 8192


def said_by_python(path):
    with open(path, encoding="utf-8") as stream:
        return {int(name): stack for name, *stack in (line.split() for line in stream)}


def difference(kept, said):
    for n, pair in enumerate(zip(kept, said)):
        if pair[0] != pair[1]:
            return "frame %d of %d, recorded %s, Python %s" % ((n, len(said)) + pair)
    return "%d frames recorded, Python has %d: %s" % (len(kept), len(said), (kept + said)[min(len(kept), len(said)):][:2])


def compare(box, python, label, seed, *options):
    out = os.path.join(box.scratch, "said")
    program = os.path.join(HERE, "programs", "frames.py")
    run = box.under([python, program, out, str(seed)] + [str(n) for n in options])
    same(run.status, 0, "%s: status (%s)" % (label, run.err[-800:]))
    part = box.parts(run)[0]
    same((part["frames_off_because"], part["lost_stacks"]), (0, 0), label + ": frames off, stacks lost")
    said, kept = said_by_python(out), box.launches(run)
    assert len(said) >= LEAST, "%s: %d launches only" % (label, len(said))
    wrong = [n for n in sorted(kept) if kept[n] != said[n]]
    assert len(kept) >= LEAST and not wrong, "%s, seed %d: %d of %d launches differ: %s" % (
        label, seed, len(wrong), len(kept), [difference(kept[n], said[n]) for n in wrong[:3]])


def rule__every_stack_is_pythons_own(box):
    pythons = find_pythons()
    if not pythons:
        raise Skip("no python3.9 to python3.14 here")
    for version, python in sorted(pythons.items()):
        for seed in (1, 2):
            compare(box, python, version, seed, 60)


def rule__every_stack_of_every_thread_is_pythons_own(box):
    compare(box, box.python, "four threads", 11, 30, 4)


def rule__without_word_of_code_objects_that_go_stacks_are_looked_at_in_full(box):
    pythons = {v: p for v, p in find_pythons().items() if v in ("3.12", "3.13", "3.14")}
    if not pythons:
        raise Skip("no python3.12 or later here")
    for version, python in sorted(pythons.items()):
        compare(box, python, version, 21, 60, 2, 0)
