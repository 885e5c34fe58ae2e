#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats C files with clang-format, but keeps tables and columns that are well laid out by hand.

    tools/format.py [--check] [FILE ...]        without FILE: every C file of the tree

--check changes nothing: it lists the places that are badly formatted and exits with 1 if there are any, or with 3 if clang-format-14
is not installed (other versions break lines differently).

.clang-format decides. Clang-format's own output always passes, so an editor that runs it does no harm. But clang-format does not
understand tables: it puts each element of a list on a line of its own, and it realigns every trailing comment. So we keep:
- white space within a line: columns of comments, values and backslashes;
- lines that fit and that clang-format would only split: rows of a list, a struct or a case on one line;
- line breaks that clang-format would remove, if it indents the following lines in the same way when told to keep breaks (ColumnLimit: 0).
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = "clang-format-14"
ROUNDS = 4
LIMIT = re.compile(r"^ColumnLimit: (\d+)$", re.M)
BLANKS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[ \t]+')
SOFT = re.compile(r"[\s\\]+")
DIRECTIVE = re.compile(r"#(include|undef|if|else|elif|endif|error|pragma)")
COMMENT = re.compile(r"\s*/\*.*?\*/\s*\\?$")
CXX = re.compile(r"\b(and|class|new|not|or|this)\b")
CONTROL = re.compile(r"\s*(\}\s*)?(if|else|for|while|do|switch)\b")


def width(line):
    return len(line.expandtabs(8))


def indent(line):
    return width(line) - width(line.lstrip())


def squeezed(line):
    """Each run of white space as one space, but for indentation and strings."""
    body = line.lstrip(" \t")
    return line[:len(line) - len(body)] + BLANKS.sub(lambda found: " " if found.group()[0] in " \t" else found.group(), body)


def solid(line):
    """Without what formatting may change: white space, and the backslashes of macros."""
    return SOFT.sub("", line)


def changes(old, new):
    """The smallest ranges of lines that begin and end at the same token and differ in more than white space within lines."""
    i = k = 0
    found = []
    while i < len(old) and k < len(new):
        a, b, j, l = len(solid(old[i])), len(solid(new[k])), i + 1, k + 1
        while a != b:
            if a < b:
                a, j = a + len(solid(old[j])), j + 1
            else:
                b, l = b + len(solid(new[l])), l + 1
        if old[i:j] != new[k:l] and [squeezed(x) for x in old[i:j]] != [squeezed(x) for x in new[k:l]]:
            found.append((i, j, k, l))
        i, k = j, l
    if i < len(old) or k < len(new):
        found.append((i, len(old), k, len(new)))
    return found


def fits(line, limit):
    """Without its trailing comment, which clang-format cannot shorten."""
    return width(COMMENT.sub("", line).rstrip()) <= limit


def may_stay(old, new, before, limit):
    """Whether the old lines are good as they are. `before` is the line above them."""
    if [x.strip() for x in old] == [x.strip() for x in new]:
        return before.startswith("#")       # clang-format takes a line after an X-macro list for its continuation
    if [solid(x) for x in old] == [solid(x) for x in new] and any(CXX.search(x) for x in old):
        return list(map(indent, old)) == list(map(indent, new))     # it takes a variable for a keyword of C++
    if len(new) <= len(old) or any(CONTROL.match(x) for x in old):
        return False
    if old[0].startswith("#define") and ("{" in old[0] or "_Generic" in "".join(old)):
        return True                         # it takes an initializer for a block of code
    if len(new) > 2 * len(old):
        limit += 10                         # a list: one element per line is worse than a row that is a little too long
    if not all(fits(x, limit) for x in old):
        return len(old) == 1 and not all(fits(x, limit) for x in new)       # a long string: splitting the line does not help
    straight = indent(old[0]) == indent(new[0]) and all(indent(x) >= indent(old[0]) or not x.strip() for x in old)
    return straight or indent(new[0]) > limit // 2


def in_doubt(old, strict, limit):
    """Ranges that clang-format would change and that may_stay does not keep."""
    return [(i, j, k, l) for i, j, k, l in changes(old, strict) if not may_stay(old[i:j], strict[k:l], old[i - 1] if i else "", limit)]


def wrong(old, doubts, loose, limit):
    """The doubtful ranges that are too long, or that clang-format changes even when told to keep line breaks."""
    moved = changes(old, loose)
    return [d for d in doubts if not all(fits(x, limit) for x in old[d[0]:d[1]]) or any(i < d[1] and j > d[0] for i, j, _, _ in moved)]


def replaced(old, strict, ranges):
    out, done = [], 0
    for i, j, k, l in ranges:
        out += old[done:i] + strict[k:l]
        done = j
    return out + old[done:]


def same(old, new):
    """Whether only white space changed, and no preprocessor directive was joined to another line."""
    a, b = [[x for x in map(solid, lines) if DIRECTIVE.match(x)] for lines in (old, new)]
    return solid("".join(old)) == solid("".join(new)) and a == b


def run(folder, style, files):
    """Copies the files into a folder and lets clang-format rewrite them in this style."""
    os.makedirs(folder, exist_ok=True)
    for name in files:
        os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, name), os.path.join(folder, name))
    with open(os.path.join(folder, ".clang-format"), "w", encoding="utf-8") as out:
        out.write(style)
    parts = [files[i:i + 20] for i in range(0, len(files), 20)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda part: subprocess.run([PROGRAM, "-i"] + part, cwd=folder, check=True), parts))


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", newline="") as file:
        return file.read().split("\n")


def c_files():
    git = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=ROOT, capture_output=True, text=True, check=False)
    found = git.stdout.split() or [os.path.relpath(os.path.join(folder, name), ROOT) for top in ("include", "src", "tests")
                                   for folder, _, names in os.walk(os.path.join(ROOT, top)) for name in names if name.endswith((".c", ".h"))]
    return sorted(x for x in found if os.path.exists(os.path.join(ROOT, x)))


def look(files, style, limit):
    """The badly formatted files: their lines as they should be, and the numbers of the wrong ones."""
    found, doubts = {}, {}
    with tempfile.TemporaryDirectory() as tmp:
        strict, loose = os.path.join(tmp, "strict"), os.path.join(tmp, "loose")
        run(strict, style, files)
        for name in files:
            old, new = read(ROOT, name), read(strict, name)
            if not same(old, new):
                sys.exit("%s: clang-format changed more than white space" % name)
            ranges = in_doubt(old, new, limit) if old != new else []
            if ranges:
                doubts[name] = ranges
        run(loose, LIMIT.sub("ColumnLimit: 0", style), list(doubts))
        for name, ranges in doubts.items():
            old, new, kept = read(ROOT, name), read(strict, name), read(loose, name)
            if not same(old, kept):
                sys.exit("%s: clang-format changed more than white space" % name)
            ranges = wrong(old, ranges, kept, limit)
            if ranges:
                found[name] = replaced(old, new, ranges), [i + 1 for i, _, _, _ in ranges]
    return found


def main():
    check = "--check" in sys.argv[1:]
    files = [os.path.relpath(x, ROOT) for x in sys.argv[1:] if x != "--check"]
    if not shutil.which(PROGRAM):
        print("there is no " + PROGRAM)
        return 3
    files = files or c_files()
    style = "\n".join(read(ROOT, ".clang-format"))
    limit = int(LIMIT.search(style).group(1))
    found = look(files, style, limit)
    if check:
        for name, (_, lines) in found.items():
            print("%s:%d" % (name, lines[0]) + (" and %d more" % (len(lines) - 1) if len(lines) > 1 else ""))
        return 1 if found else 0
    changed = set()
    for _ in range(ROUNDS):     # a new line may change how clang-format lays out its neighbors
        for name, (new, _) in found.items():
            with open(os.path.join(ROOT, name), "w", encoding="utf-8", newline="") as out:
                out.write("\n".join(new))
        changed |= set(found)
        found = look(list(found), style, limit) if found else {}
    print("format: %d files changed" % len(changed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
