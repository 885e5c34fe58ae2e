#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be read from the sources alone: check_source.py CHECK [ROOT] prints what contradicts CHECK, a function below.

tests/tree/check.py plants violations of each in a copy of the tree: a check that does not see them checks nothing."""
import os
import re
import sys

# Who may include whom; ARCHITECTURE.md has the table with the reasons. A part may always use itself, kb and system headers.
FACTS = "base allocator compat formats probe case knowledge read find include".split()
USES = {
    "base": [],
    "writes": ["base"],
    "allocator": ["base"],
    "compat": ["base"],
    "formats": ["base", "compat"],
    "probe": ["base"],
    "case": ["base", "compat"],
    "knowledge": ["base", "case"],
    "knowledge/compile": ["base", "compat", "case", "knowledge"],
    "read": ["base", "compat", "formats", "probe", "case", "include"],
    "find": FACTS,
    "verdict/rules": ["base", "compat", "case", "knowledge"],
    "verdict": FACTS + ["verdict/rules"],
    "show": FACTS + ["verdict/rules", "verdict"],
    "run": FACTS + ["verdict/rules", "verdict", "show", "writes", "cmd"],     # of one floor with fit and cmd: commands with rooms of their own
    "fit": FACTS + ["verdict/rules", "verdict", "show", "run", "cmd"],
    "cmd": FACTS + ["verdict/rules", "verdict", "show", "run", "fit"],
    "recorder": ["include"],
    "redirect": ["portable"],
    "sim/cuda": ["formats"],
    "sim/nvml": ["sim/cuda"],
    "sim/loader": [],
    "portable": [],
}
STAND_IN = ["sim/common"]   # src/sim/*, each a library of its own
# what a part uses of another: the simulated GPUs and their keys, for `cuwhy run --gpu`; the driver's functions
TABLES = {("redirect", "src/writes/scratch.h"), ("find", "src/sim/cuda/sim_models.def"), ("run", "src/sim/cuda/sim_models.def"), ("fit", "src/sim/cuda/sim_models.def"), ("run", "src/sim/cuda/sim_spec.h"), ("run", "src/sim/cuda/sim_cards.h"), ("fit", "src/sim/cuda/sim_spec.h"), ("cmd", "src/sim/cuda/sim_spec.h"), ("sim/common", "src/sim/cuda/sim_abi.h"), ("sim/common", "src/sim/cuda/sim_api.def"),
          ("sim/nccl", "src/sim/cuda/sim_file.h")}

HARD_LIMIT = 160    # columns; .clang-format breaks code at 120, but neither comments nor strings
INCLUDE = re.compile(r'\s*#\s*include\s*(?:["<]([^">]+)[">]|(\S+))')
ONE_STRING = re.compile(r'\s*[{(]*"(?:\\.|[^"\\])*"[\s,;)}\\]*$')
CAUSE_TESTS = ("tests/e2e", "tests/gpu/cases", "tests/gpu/faults", "tests/unit", "tests/text/own")
# In these a cause is a bare string: elsewhere "oom" may be anything.
DOCTOR_TESTS = re.compile(r"tests/(unit/test_doctor\.c|e2e/rules_doctor\w*\.py)$")


def files(root, *tops, ends=()):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not ends or name.endswith(ends):
                    yield os.path.relpath(os.path.join(folder, name), root)


def lines(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as f:
        return list(enumerate(f.read().split("\n"), 1))


def part(path):
    """The part of the tree that a file belongs to, and for a reader its kind."""
    words = path.split("/")
    if words[0] != "src":
        return words[0], ""
    folder = words[2] if len(words) > 3 else ""
    if words[1] == "sim" or "/".join(words[1:3]) in USES:
        return "/".join(words[1:3]), ""
    return words[1], folder if words[1] == "read" else ""


def included(root, name, what):
    """The file of ours that an include means, as the compiler looks for it; None: a system header."""
    for base in (os.path.dirname(name), "src", "include", ""):
        path = os.path.normpath(os.path.join(base, what))
        if os.path.exists(os.path.join(root, path)):
            return path
    return None


def may_include(name, path):
    (user, kind), (used, other) = part(name), part(path)
    if used == "kb" or (user, path) in TABLES:
        return True
    if user == used:
        return kind == other or not other
    return used in USES.get(user, STAND_IN if user.startswith("sim/") else [])


def layers(root):
    """No include goes against the table, and no input knows another."""
    for name in files(root, "src", ends=(".c", ".h", ".def", ".S")):
        for number, line in lines(root, name):
            found = INCLUDE.match(line)
            if not found:
                continue
            path = included(root, name, found.group(1)) if found.group(1) else None
            if found.group(2):
                yield "%s:%d: name the file: %s" % (name, number, line.strip())
            elif path and not may_include(name, path):
                yield "%s:%d: %s" % (name, number, line.strip())


def setters(root):
    """The functions of src/case and src/verdict that change a case or a verdict."""
    declared = re.compile(r"\b(\w+)\(([^()]*)\)", re.S)
    changes = re.compile(r"(?<!const )struct (?:casefile|verdict) \*\w")
    for name in files(root, "src/case", "src/verdict", ends=(".h",)):
        for function, parameters in declared.findall("\n".join(line for _, line in lines(root, name))):
            if changes.search(parameters):
                yield function


def writers(root):
    """Writers read the case and never set it."""
    calls = re.compile(r"\b(fact_set_\w+|%s)\s*\(" % "|".join(sorted(set(setters(root)) - {"verdict_free"})))
    holds = re.compile(r"(?<!const )struct (?:casefile|verdict) \*(?!\*?const)")
    for name in files(root, "src/show", ends=(".c", ".h")):
        for number, line in lines(root, name):
            if calls.search(line):
                yield "%s:%d: sets the case: %s" % (name, number, line.strip())
            elif holds.search(line):
                yield "%s:%d: not const: %s" % (name, number, line.strip())


STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{")
FUNCTION_TYPE = re.compile(r"\btypedef\b[^;{}()]*?(?:\(\s*\*\s*(\w+)\s*\)|\b(\w+))\s*\(\s*(?!\*)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
NO_CASE = ("src/case/process.h",)   # how a process ended: find reads it


def code(root, name):
    """The text without comments; lines stay where they are."""
    text = "\n".join(line for _, line in lines(root, name))
    return COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def members(text):
    """(number of its line, line) of what is declared within a struct."""
    depth, inside = 0, []
    for number, line in enumerate(text.split("\n"), 1):
        if inside:
            yield number, line
        for found in re.finditer(r"\bstruct\b[^;{}()]*\{|[{}]", line):
            depth += found.group() != "}"
            depth -= found.group() == "}"
            if found.group() not in "{}":
                inside.append(depth)
            while inside and depth < inside[-1]:
                inside.pop()


def values(root):
    """A case is a finished value: nothing in it calls back or points into a reader, no other input is asked while it is judged, and the judge
    never changes a text."""
    foreign, own, called, changing = set(), set(), set(), set()
    for name in files(root, "src", ends=(".c", ".h")):
        text = code(root, name)
        (own if part(name)[0] in ("base", "case") else foreign).update(STRUCT.findall(text))
        if name.endswith(".c"):
            continue
        called.update(a or b for a, b in FUNCTION_TYPE.findall(text))
        if part(name)[0] in ("read", "find"):
            changing.update(re.findall(r"\b(\w+)\((?:[^()]*, )?struct text_log \*[^()]*\);", text))
    calls_back = re.compile(r"\(\s*\*\s*\w*\s*(?:\[\w*\]\s*)?\)\s*\(|\b(?:%s)\s+\*?\s*\w+\s*[\[;,]" % "|".join(sorted(called)))
    points = re.compile(r"\bstruct\s+(?:%s)\b" % "|".join(sorted(foreign - own)))
    changes = re.compile(r"(?<!const )\bstruct text_log \*|\b(?:%s)\s*\(" % "|".join(sorted(changing)))
    for name in files(root, "src/case", "src/verdict", ends=(".c", ".h")):
        text = code(root, name)
        for number, line in members(text) if name.endswith(".h") and part(name)[0] != "verdict/rules" else ():
            if calls_back.search(line):
                yield "%s:%d: calls back: %s" % (name, number, line.strip())
            elif part(name)[0] == "case" and name not in NO_CASE and points.search(line):
                yield "%s:%d: points into a reader: %s" % (name, number, line.strip())
        for number, line in enumerate(text.split("\n"), 1):
            if changes.search(line):
                yield "%s:%d: changes a text: %s" % (name, number, line.strip())


def columns(root):
    """No line of C is longer than HARD_LIMIT, unless it is one string or has an address that cannot be broken."""
    for name in files(root, "include", "src", "tests", ends=(".c", ".h")):
        for number, line in lines(root, name):
            width = len(line.expandtabs(8))
            if width > HARD_LIMIT and not ONE_STRING.match(line) and not re.search(r"https?://\S{40}", line):
                yield "%s:%d: %d columns" % (name, number, width)


SIGNALS = re.compile(r"""(?<![\w.>])(?:killpg|tgkill|tkill|sigqueue|pthread_kill|pthread_sigqueue|pidfd_send_signal)\s*\(
                        |\bSYS_(?:kill|tkill|tgkill|rt_sigqueueinfo|rt_tgsigqueueinfo|pidfd_send_signal)\b
                        |(?<![\w.>])kill\s*\(|\bos\.(?:kill|killpg)\b|\bsignal\.(?:pthread_kill|pidfd_send_signal)\b""", re.X)
ASKS = re.compile(r"\b(?:kill|SYS_tgkill)\b[^;]*,\s*0\)")     # signal 0: is there such a process?


def signals(root):
    """Only src/base/children.c sends signals to other processes: it knows whose a pid is."""
    for name in files(root, "src", "python", ends=(".c", ".h", ".def", ".py")):
        if name == "src/base/children.c":
            continue
        for number, line in lines(root, name):
            if SIGNALS.search(line) and not ASKS.search(line) and not re.match(r"\s*(/?\*|#)", line):
                yield "%s:%d: signals a process: %s" % (name, number, line.strip())


def formatter(root):
    """Nobody turns the formatter off."""
    for name in files(root, "include", "src", "tests", ends=(".c", ".h")):
        for number, line in lines(root, name):
            if re.search(r"clang-format\s+o(ff|n)\b", line):
                yield "%s:%d: %s" % (name, number, line.strip())


PYTHON_HEADER = re.compile(r'^\s*#\s*include\s+"(?:[\w/]+/)?(?:rec_python(?:_bytecode)?|rec_turns|pyproc|python)\.h"', re.M)
# an argument that is an address and a number of words, or an offset alone
OFFSET = re.compile(r"""\b(?:load|load_number)\([^;{}]*?,\s*(?P<alone>\d+)\)
                       |\b(?:memcpy|GET|read_pointer|rec_read_memory|remote_(?:word|read|string))\([^;{}]*?[\w\])]\s*[+-]\s*(?P<added>\d+)\s*[,)]
                       |\*\)\(\w+\s*\+\s*(?P<cast>\d+)\)""", re.X)


def offsets(root):
    """Where CPython keeps things stands in kb/python_layouts.def alone: who reads its objects does so by name."""
    for name in files(root, "src", ends=(".c", ".h")):
        text = code(root, name)
        for found in OFFSET.finditer(text) if PYTHON_HEADER.search(text) else ():
            if int(found.group("alone") or found.group("added") or found.group("cast")) % 8 == 0:
                yield "%s:%d: no bare offset: %s" % (name, text.count("\n", 0, found.start()) + 1, " ".join(found.group().split()))


def causes(root):
    """Every cause has a program or a text that triggers it: named in full, not as the beginning of another's id."""
    named = set()
    expected = re.compile(r"cause[=:]\s?((?:[a-z0-9-]+[,|])*[a-z0-9-]+)")
    for name in files(root, *CAUSE_TESTS):
        text = "\n".join(line for _, line in lines(root, name))
        for found in expected.findall(text):
            named.update(re.split("[,|]", found))
        if DOCTOR_TESTS.search(name):
            named.update(re.findall(r'"([a-z0-9-]+)"', text))
    for name in files(root, "kb/causes", ends=(".md",)):
        cause = os.path.basename(name)[:-3]
        if cause not in named and cause not in ("none", "unknown"):
            yield cause


CHECKS = {check.__name__: check for check in (layers, writers, values, columns, signals, formatter, offsets, causes)}


def main():
    root = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = list(CHECKS[sys.argv[1]](root))
    print("\n".join(found)) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
