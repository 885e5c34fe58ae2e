# SPDX-License-Identifier: Apache-2.0
"""What a tool's output says about a failing program: the answers that compare.py counts, by text search alone."""
import os
import pickle
import re
from collections import Counter

FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)')
NAMED = re.compile(r"([\w-]+\.py):(\d+)\b")
WHERE = re.compile(r"^ +WHERE +\S*?([\w-]+\.py):(\d+)\b", re.M)
HOST_FRAME = re.compile(r"^=+ +Host Frame: .* in ([\w-]+\.py):(\d+)", re.M)
TRIPLE = r"\d+, ?\d+, ?\d+"
THREAD = re.compile(r"thread:? [(\[]%s[)\]] in block [(\[]%s|block:? [(\[]%s[)\]],? thread:? [(\[]%s" % ((TRIPLE,) * 4))
ADDRESS = re.compile(r"(?:bytes at|(?:Address|Access (?:at|to))) 0x[0-9a-f]+|access to address \S*0x[0-9a-f]+")
# PyTorch adds this to every out-of-memory error, whatever its cause
STANDING_HINT = re.compile(r"If reserved but unallocated memory is large.*?(?:\n|$)")


class Truth:
    """What is known about a program beforehand. `asked` are the questions that make sense for it."""

    def __init__(self, case, asked, kernel, why, inside=None):
        self.name, self.asked = case.name, asked.split()
        self.kernel, self.why = kernel and re.compile(kernel), re.compile(why, re.I)
        marks = case.marks
        self.here, self.culprit = marks.get("here", []), marks.get("culprit", [])
        self.calls = marks.get("replay", []) + marks.get("backward", [])
        folder = os.path.dirname(case.path)
        self.files, self.source = {os.path.basename(case.path)}, []
        for path in [case.path] + [os.path.join(folder, used) for used in case.uses]:
            self.files.add(os.path.basename(path))
            with open(path, encoding="utf-8") as stream:
                self.source += [line.strip() for line in stream]
        self.inside = [(os.path.basename(case.path), number) for number, line in enumerate(self.source, 1)
                       if inside and line.startswith(inside)]


def last_traceback(text, files):
    """The frames in the user's files of the last traceback that has any, outermost first."""
    best = []
    for block in text.split("Traceback (most recent call last):")[1:]:
        frames = []
        for line in block.splitlines()[1:]:
            if line[:1] != " ":
                break
            found = FRAME.match(line)
            if found and os.path.basename(found.group(1)) in files:
                frames.append((os.path.basename(found.group(1)), int(found.group(2))))
        best = frames or best
    return best


def own_words(tool, text):
    """What cuwhy says for a run under cuwhy, otherwise everything that was printed."""
    if tool != "cuwhy":
        return text
    found = re.search(r"^cuwhy: .*", text, re.M | re.S)
    return found.group(0) if found else ""


def without_source(text, truth):
    """The text, on one line, without the program's own lines, which may contain a kernel's name or any word."""
    for line in truth.source:
        if len(line) > 8:
            text = text.replace(line, " ")
    return " ".join(STANDING_HINT.sub(" ", text).split())


def places(tool, text, truth):
    """Where the tool says that it happened, and all of the user's lines that it names."""
    if tool == "cuwhy":
        words = own_words(tool, text)
        found = WHERE.search(words)
        return (found.group(1), int(found.group(2))) if found else None, [(f, int(n)) for f, n in NAMED.findall(words)]
    frames = last_traceback(text, truth.files)
    if tool == "sanitizer":     # of the first error, innermost first; the traceback of the program comes after it
        host = [(f, int(n)) for f, n in HOST_FRAME.findall(text) if f in truth.files]
        frames = host[:1] or frames
    named = list(frames)
    for line in text.splitlines():
        if line.startswith("========="):
            named += [(f, int(n)) for f, n in NAMED.findall(line) if f in truth.files]
    return frames[-1] if frames else None, named


def line_answer(tool, text, truth, heaviest=None):
    """yes; call: the line that ran the backward or the graph; inside: a line in the kernel; other; none."""
    answer, named = places(tool, text, truth)
    if truth.culprit:
        named = named + [heaviest] if heaviest else named
        return "yes" if set(named) & set(truth.culprit) else "other" if named else "none"
    if answer in truth.here:
        return "yes"
    if answer in truth.calls:
        return "call"
    if set(named) & set(truth.inside):
        return "inside"
    return "other" if answer else "none"


def answers(tool, text, truth, heaviest=None):
    """One word for each question about the program."""
    words = without_source(own_words(tool, text), truth)
    found = {"line": line_answer(tool, text, truth, heaviest)}
    for question, pattern in (("kernel", truth.kernel), ("thread", THREAD), ("address", ADDRESS), ("why", truth.why)):
        found[question] = "yes" if pattern and pattern.search(words) else "no"
    return {question: found[question] for question in truth.asked}


def heaviest_line(path, files):
    """Of a memory snapshot: the user's line whose live blocks hold the most bytes; None without any."""
    with open(path, "rb") as stream:
        snapshot = pickle.load(stream)      # written by our own run a moment ago
    held = Counter()
    for segment in snapshot.get("segments", ()):
        for block in segment.get("blocks", ()):
            if block.get("state") != "active_allocated":
                continue
            for frame in block.get("frames", ()):       # innermost first
                name = os.path.basename(frame.get("filename", ""))
                if name in files:
                    held[(name, frame.get("line"))] += block.get("size", 0)
                    break
    return held.most_common(1)[0][0] if held else None
