#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots of every shape, protocol and story, read by cuwhy and compared with what was written: check.py BUILD [--list] [NAME...], a name being
part of what --list prints or, after =, all of it."""
import functools
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_snapshot as make  # noqa: E402

SHAPES = ("1.13", "2.0", "2.1", "2.3", "2.5", "2.7", "2.9", "2.11", "2.12")
PROTOCOLS = (0, 2, 3, 4, 5)	# 0: the writer of PyTorch's C++ side
CAUSES = {"train": "none", "growth": "oom-growth", "capacity": "oom-capacity", "fragmentation": "oom-fragmentation",
          "list": "oom-growth", "one-line": "oom-growth", "fill": "oom-capacity", "layers": "oom-eval-without-no-grad", "too-large": "oom-request-too-large", "other-process": "oom-other-process"}
MAY_BE = {  # a loop over batches whose graphs stay, or over the layers of one pass: nothing in the snapshot tells them apart
    "fill": [("oom-capacity", "likely"), ("oom-growth", "possible")],
    "layers": [("oom-eval-without-no-grad", "possible"), ("oom-graph-retention", "possible"), ("oom-capacity", "possible")]}
LINES = {"growth": 70, "list": 40, "one-line": 40, "fill": 40, "fragmentation": 50, "too-large": 77, "other-process": 30}

failures = []
passed = 0


def check(what, got, want):
    global passed
    if got == want:
        passed += 1
    else:
        failures.append(f"{what}: {got!r}, expected {want!r}")


def cuwhy(build, *args):
    p = subprocess.run([os.path.join(build, "cuwhy"), *args], capture_output=True, text=True)
    try:
        return p.returncode, json.loads(p.stdout)
    except ValueError:
        return p.returncode, {"said": p.stdout + p.stderr}


def place(frames):
    """The innermost frame of the user's own code."""
    own = [f for f in frames if f["filename"].startswith("/home/user/")]
    return (own[0]["filename"], own[0]["line"]) if own else None


def truth(top):
    """Sums over the segments, and live bytes by line, straight from the objects that were pickled."""
    segments = top["segments"] if isinstance(top, dict) else top
    lines = {}
    for s in segments:
        for b in s["blocks"]:
            if b["state"] == "active_allocated":
                frames = b.get("frames") or (b.get("history") or [{}])[0].get("frames", [])
                lines[place(frames)] = lines.get(place(frames), 0) + b["size"]
    return sum(s["total_size"] for s in segments), sum(s["allocated_size"] for s in segments), lines


def compare(build, path, name, top, device):
    code, said = cuwhy(build, "memory", "--json", "--at", "end", path)
    check(name + " exit", code, 0)
    devices = said.get("devices", [])
    check(name + " devices", [d["device"] for d in devices], [device])
    if len(devices) != 1:
        return
    reserved, allocated, lines = truth(top)
    check(name + " reserved", devices[0]["reserved"], reserved)
    check(name + " allocated", devices[0]["allocated"], allocated)
    got = {(h.get("file"), h.get("line")) if "file" in h else None: h["bytes"] for h in devices[0]["holders"]}
    check(name + " holders", got, lines)
    events = len(top["device_traces"][device]) if isinstance(top, dict) else 0
    check(name + " events", devices[0]["events"], events)


def check_shape(build, tmp, shape):
    for protocol in PROTOCOLS:
        for zipped in (False, True):
            device = 1 if protocol == 5 else 0
            top = make.make(shape, "train", 900, device=device)
            path = os.path.join(tmp, "snap")
            make.write(path, top, protocol, zipped)
            compare(build, path, f"{shape} protocol {protocol}{' gzip' if zipped else ''}", top, device)


def check_story(build, tmp, story):
    cause = CAUSES[story]
    path = os.path.join(tmp, story)
    make.write(path, make.make("2.11", story, 20_000), 4)
    code, said = cuwhy(build, "explain", "--json", path)
    check(story + " cause", said.get("cause"), cause)
    check(story + " exit", code, 0 if cause == "none" else 1)
    if story in MAY_BE:
        check(story + " candidates", [(c["cause"], c["certainty"]) for c in said.get("candidates", [])],
              MAY_BE[story])
    if story in LINES:
        check(story + " line", (said.get("where") or {}).get("line"), LINES[story])


def check_piles(build, tmp):
    """However many rounds there were, and whichever line allocated what was freed meanwhile."""
    for rounds in (16, 20, 24, 36, 80, 300):
        for line in (39, 40):
            for temporary in (1, 2, 3):
                a = make.Allocator(16 * make.GIB, (2, 11))
                make.pile(a, temporary=temporary, line=line, rounds=rounds)
                path = os.path.join(tmp, "pile")
                make.write(path, a.snapshot(), 4)
                said = cuwhy(build, "explain", "--json", path)[1]
                check(f"{rounds} rounds, {temporary} of line {line} freed", (said.get("cause"), said.get("certainty")),
                      ("oom-growth", "likely"))


def looped(keep, turns=60, history=None):
    """A loop whose line 40 keeps a tensor in each turn, if asked to, and whose model allocates others that go: until the card is full. `history`: events that PyTorch kept."""
    a = make.Allocator(16 * make.GIB, (2, 11))
    code = make.Code()
    at = lambda line, *inside: code.stack(*inside, ("step", "/home/user/train.py", line), ("<module>", "/home/user/train.py", 88))      # noqa: E731
    if not keep:        # as many are loaded first
        for _ in range(turns - 2):
            a.alloc(a.total // turns, code.stack(("load", "/home/user/train.py", 20), ("<module>", "/home/user/train.py", 80)))
    while True:
        passing = [a.alloc(a.total // turns // 4, at(line, *make.LAYER)) for line in (38, 39)]
        kept = a.alloc(a.total // turns, at(40)) if None not in passing else None
        for t in passing + ([] if keep else [kept]):
            if t:
                a.free(t)
        if kept is None:
            break
        if not keep and len(a.events) > 1000:       # it fits: then one larger request does not
            a.alloc(a.total // 2, at(41))
            break
    top = a.snapshot()
    if history:
        top["device_traces"][0] = top["device_traces"][0][-history:]
    return top


def check_growth(build, tmp):
    """What each turn leaves behind, since when and until when; of the newest events alone, no number of turns is claimed."""
    path = os.path.join(tmp, "loop")
    for turns in (20, 60, 150):
        make.write(path, looped(True, turns), 4)
        growth = cuwhy(build, "explain", "--json", path)[1]["memory"]["growth"] or {}
        told = growth.get("fails_at") or 0
        check(f"{turns} turns: line", growth.get("line"), "/home/user/train.py:40")
        check(f"{turns} turns: since", growth.get("since"), 1)
        check(f"{turns} turns: bytes", growth.get("bytes"), (16 * make.GIB // turns + 511) // 512 * 512)
        check(f"{turns} turns: linear", (growth.get("steady"), growth.get("more")), (True, 0))
        check(f"{turns} turns: failed in {told}", abs(told - turns) <= 2, True)
    make.write(path, looped(True, 60, history=60), 4)
    growth = cuwhy(build, "explain", "--json", path)[1]["memory"]["growth"] or {}
    check("newest events: line", growth.get("line"), "/home/user/train.py:40")
    check("newest events: turns", (growth.get("since"), growth.get("fails_at")), (None, None))
    make.write(path, looped(False), 4)
    memory = cuwhy(build, "explain", "--json", path)[1]["memory"]
    check("a loop that leaves nothing", (memory["growth"], memory["settled"]), (None, True))


def check_short_history(build, tmp):
    """Tensors of one line that are older than a history of a few events: growth, as sure as the line still adds to them."""
    path = os.path.join(tmp, "short")
    for keep, history, answer in ((True, 14, [("oom-growth", "likely")]), (True, 6, [("oom-capacity", "possible"), ("oom-growth", "possible")]),
                                  (False, 60, [("oom-capacity", "possible"), ("oom-growth", "possible")])):
        make.write(path, looped(keep, history=history), 4)
        said = cuwhy(build, "explain", "--json", path)[1]
        check(f"{history} events, {'kept' if keep else 'loaded'}", sorted((c["cause"], c["certainty"]) for c in said["candidates"]), answer)


def without_stacks(story):
    top = make.make("2.11", story, 20_000)
    for record in top["segments"] + [b for s in top["segments"] for b in s["blocks"]] + top["device_traces"][0]:
        if record.pop("frames", None) is not None and "state" in record:
            record["frames"] = []
    return top


def check_without_stacks(build, tmp):
    """No lines: nothing is known of turns, and only totals and pieces can be judged."""
    path = os.path.join(tmp, "bare")
    for story, later, answer in (("capacity", False, ("oom-capacity", "likely")), ("fragmentation", False, ("oom-fragmentation", "likely")),
                                 ("fragmentation", True, ("oom-fragmentation", "likely"))):
        top = without_stacks(story)
        if later:       # the snapshot was taken when some more had gone: its pieces are not those of the failure
            top["device_traces"][0].append({"action": "free_completed", "addr": 512, "size": 512, "stream": 0})
        make.write(path, top, 4)
        said = cuwhy(build, "explain", "--json", path)[1]
        check(f"{story} without stacks", (said.get("cause"), said.get("certainty")), answer)


def check_cut(build, tmp):
    """A file that ends early is an error, plain or compressed."""
    for zipped in (False, True):
        path = os.path.join(tmp, "cut")
        make.write(path, make.make("2.11", "train", 900), 4, zipped)
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(data[:len(data) * 2 // 3])
        code, said = cuwhy(build, "explain", "--json", path)
        check("cut exit", code, 2)
        check("cut message", "cut short" in said.get("failure", {}).get("message", ""), True)


def tests_by_name():
    tests = {"shape-" + shape: functools.partial(check_shape, shape=shape) for shape in SHAPES}
    tests.update({"story-" + story: functools.partial(check_story, story=story) for story in CAUSES})
    tests.update({"piles": check_piles, "growth": check_growth, "short-history": check_short_history, "without-stacks": check_without_stacks, "cut": check_cut})
    return tests


def main():
    build, *words = sys.argv[1:]
    tests = tests_by_name()
    names = [word for word in words if word != "--list"]
    chosen = [name for name in tests if not names or any(n[1:] == name if n.startswith("=") else n in name for n in names)]
    if "--list" in words:
        print("\n".join(chosen))
        return 0
    with tempfile.TemporaryDirectory() as tmp:
        for name in chosen:
            tests[name](build, tmp)
    for f in failures:
        print("not ok -", f)
    print(f"snapshots: {passed} passed, {len(failures)} failed")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
