#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the source is built: tools/house.py [PART...] [--root TREE] [--build BUILD]

    rooms      files and lines of each folder, and the longest files
    includes   who includes whom, by room
    backwards  cases and readers that ask or are changed by what comes after them
    functions  how long they are, and how many are used once and short
    literals   strings that the reader of logs looks for in C
    twice      runs of lines that stand at two places
    rules      rules by what they ask, and mechanisms that decide
    start      instructions that `cuwhy explain` takes on a log of two lines (needs perf or valgrind)
    walks      files of src that four tasks pass through (builds the tree with coverage, into build-cov)

Without a part, all but the last. The same script measures any older tree: --root."""
import argparse
import collections
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
FUNCTION = re.compile(r"^(static )?[\w \*]+?\b(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}", re.M | re.S)
SAME_LINES = 6          # so many lines in a row are not the same by chance


def read(path):
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def sources(*ends):
    return sorted(p for p in glob.glob("src/**/*", recursive=True) if p.endswith(ends or (".c", ".h", ".def", ".S")))


def room(path):
    """The folder below src, and the one below that where rooms have rooms."""
    words = path.split("/")[1:-1]
    return "/".join(words[:2]) or "."


def without_comments(text):
    return COMMENT.sub(lambda m: m.group() if m.group().startswith('"') else "", text)


def table(rows):
    width = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(str(cell).ljust(w) if i == 0 else str(cell).rjust(w) for i, (cell, w) in enumerate(zip(row, width))).rstrip())


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0


def rooms(_):
    files, lines = collections.Counter(), collections.Counter()
    for path in sources():
        files[room(path)] += 1
        lines[room(path)] += read(path).count("\n")
    kb = sum(read(p).count("\n") for p in glob.glob("kb/**/*", recursive=True) if os.path.isfile(p))
    table([("room", "files", "lines")] + [(r, files[r], lines[r]) for r in sorted(files)] +
          [("src", sum(files.values()), sum(lines.values())), ("kb", sum(os.path.isfile(p) for p in glob.glob("kb/**/*", recursive=True)), kb)])
    sizes = sorted(((read(p).count("\n"), p) for p in sources(".c")), reverse=True)
    print("  .c files: median %d, p90 %d, longest %s" % (quantile([n for n, _ in sizes], .5), quantile([n for n, _ in sizes], .9),
                                                        ", ".join("%s %d" % (p, n) for n, p in sizes[:6])))


def resolve(path, what):
    return next((p for p in (os.path.normpath(os.path.join(d, what)) for d in (os.path.dirname(path), "src", "include", "")) if os.path.exists(p)), None)


def includes(_):
    matrix, users = collections.Counter(), collections.defaultdict(set)
    for path in sources():
        for what in INCLUDE.findall(read(path)):
            found = resolve(path, what)
            if found and found.startswith("src/"):
                users[found].add(path)
                a, b = path.split("/")[1], found.split("/")[1]
                matrix[a, b] += a != b
    names = sorted({n for pair in matrix for n in pair})
    used = [n for n in names if any(matrix[m, n] for m in names)]
    table([("uses",) + tuple(used)] + [(m,) + tuple(matrix[m, n] or "." for n in used) for m in names])
    headers = sources(".h")
    one = [h for h in headers if len({p for p in users[h] if os.path.splitext(p)[0] != os.path.splitext(h)[0]}) == 1]
    print("  headers: %d, with one user besides their own file: %d" % (len(headers), len(one)))


def backwards(_):
    """Data that flows against the arrow: read, find, case, verdict, show. A function that is handed down for one call (each, line) is none."""
    found = []
    for path in (p for top in ("case", "find", "read", "input") for p in glob.glob("src/%s/**/*.h" % top, recursive=True)):
        text = without_comments(read(path))
        if path.startswith("src/case/"):
            found += ["%s: a case that asks: %s" % (path, m.group().strip()) for m in re.finditer(r"^\s[^\n]*\(\*\w+\)\([^;]*;", text, re.M)]
        found += ["%s: keeps whom to ask: %s" % (path, m.group()) for m in re.finditer(r"^void \w+\(\w+_fn \*\w*\);", text, re.M)]
    for path in (p for top in ("judge", "rules", "verdict") for p in glob.glob("src/%s/**/*.c" % top, recursive=True)):
        text = without_comments(read(path))
        found += ["%s: changes what was read: %s" % (path, m.group().strip()) for m in re.finditer(r"\blog_since\w*\([^;]*;", text)]
        found += ["%s: asks what was read: %s" % (path, m.group().strip()) for m in re.finditer(r"[^\n]*->says\(", text)]
    print("  backwards: %d" % len(found))
    print("".join("    %s\n" % f for f in found), end="")


def functions(_):
    lengths, short, statics, deep = [], 0, 0, 0
    for path in sources(".c"):
        text = without_comments(read(path))
        deep += len(re.findall(r"[^;{}]*\?[^;{}?]*:[^;{}?]*\?[^;{}?]*:[^;{}?]*\?[^;{}]*;", text))
        for static, name, _, body in FUNCTION.findall(text):
            n = body.count("\n")
            lengths.append(n)
            if static:
                statics += 1
                short += n <= 12 and len(re.findall(r"\b%s\b" % name, text)) == 2
    print("  functions: %d, lines median %d, p90 %d, longest %d; static %d, of these used once and of at most 12 lines %d (%.0f %%); statements with three ?: %d" % (
        len(lengths), quantile(lengths, .5), quantile(lengths, .9), max(lengths), statics, short, 100 * short / statics, deep))
    text = [read(p) for p in sources(".c", ".h")]
    comment = sum(m.group().count("\n") + 1 for t in text for m in COMMENT.finditer(t) if m.group().startswith("/"))
    banner = sum(len(re.findall(r"^\s*/\* ?-{3}", t, re.M)) for t in text)
    print("  comments: %.1f %% of the lines, %d banners" % (100 * comment / sum(t.count("\n") for t in text), banner))


def literals(_):
    counts = {}
    for path in glob.glob("src/input/text/*.c") + glob.glob("src/find/words/*.c") + glob.glob("src/read/text/*.c"):
        text = re.sub(r"^\s*#.*$", "", without_comments(read(path)), flags=re.M)
        counts[path] = sum(1 for s in STRING.findall(text) if s and "%" not in s)
    print("  strings in the reader of logs: %d in %d files; most in %s" % (
        sum(counts.values()), len(counts), ", ".join("%s %d" % (os.path.basename(p), n) for p, n in sorted(counts.items(), key=lambda i: -i[1])[:6])))


def twice(_):
    """Runs of lines that stand at two places, by their digests; a run is counted once, at its longest."""
    places, pairs = collections.defaultdict(list), 0
    for path in sources(".c"):
        code = [(i, line.strip()) for i, line in enumerate(without_comments(read(path)).split("\n"), 1)]
        code = [(i, line) for i, line in code if len(line) > 1 and not line.startswith("#include")]
        for k in range(len(code) - SAME_LINES + 1):
            window = code[k:k + SAME_LINES]
            places[hashlib.sha1("\n".join(line for _, line in window).encode()).digest()].append((path, window[0][0], k))
    seen = set()
    for where in places.values():
        for path, line, k in where[1:]:
            first = where[0]
            pairs += (first[0], first[2] - 1, path, k - 1) not in seen
            seen.add((first[0], first[2], path, k))
    print("  runs of %d lines or more at two places: %d" % (SAME_LINES, pairs))


def rules(_):
    when = [line for p in glob.glob("kb/causes/*.md") for line in read(p).split("\n") if re.match(r"when (certain|likely|possible)", line)]
    print("  rules: %d in %d causes; ask whether there is a text (text.is): %d; ask whether the room was proven: %d" % (
        len(when), len(glob.glob("kb/causes/*.md")), sum("text.is" in w for w in when), sum("!room.proven" in w for w in when)))


def instructions(words, given):
    if shutil.which("perf"):
        run = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *words], input=given, capture_output=True)
        found = re.search(rb"^(\d+),+instructions", run.stderr, re.M)
        if found:
            return int(found.group(1)), "perf"
    if shutil.which("valgrind"):
        run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words], input=given, capture_output=True)
        found = re.search(rb"Collected : (\d+)", run.stderr)
        if found:
            return int(found.group(1)), "valgrind"
    return None, "neither perf nor valgrind can count"


def start(o):
    for name, words, given in (("explain, a log of two lines", ["explain", "--json", "-"], b"Traceback (most recent call last):\nRuntimeError: CUDA error: invalid device ordinal\n"),
                               ("--version", ["--version"], b"")):
        n, how = instructions([os.path.join(o.build, "cuwhy"), *words], given)
        print("  instructions of %s: %s (%s)" % (name, n, how))


# A failing launch, a call of cuBLAS's stand-in and a fit need programs: those of the end-to-end tests.
def coverage_build(root):
    folder = os.path.join(root, "build-cov")
    subprocess.run(["make", "-j%d" % (os.cpu_count() or 1), "B=" + os.path.relpath(folder, root), "CFLAGS=-O0 -g --coverage", "LDLIBS=-ljansson -liberty -lz -llzma -lzstd -ldl -lm", "CHARTS=no", "all"],
                   cwd=root, stdout=subprocess.DEVNULL, check=True)
    return folder


def visited(folder, counts):
    """The files of src of which some function ran."""
    found = set()
    for path in below(counts, ".gcda"):
        plain = os.path.join(folder, os.path.relpath(path, counts).split(os.path.basename(folder) + "/", 1)[-1])
        shutil.copyfile(path, plain)
        run = subprocess.run(["gcov", "--json-format", "--stdout", plain], capture_output=True, cwd=folder)
        os.remove(plain)
        for line in run.stdout.splitlines():
            for each in json.loads(line)["files"]:
                if "src/" in each["file"] and each["file"].endswith(".c") and any(f["execution_count"] for f in each["functions"]):
                    found.add("src/" + each["file"].split("src/", 1)[-1])
    return found


def below(folder, ending):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(ending)]


def walks(o):
    folder = coverage_build(os.getcwd())
    cuwhy = os.path.join(folder, "cuwhy")
    tasks = (("a log of two lines", [cuwhy, "explain", "--json", "-"]),
             ("a launch that fails", [sys.executable, "tests/e2e/run.py", "--build", folder, "-j", "1", "grid_limit"]),
             ("fit", [sys.executable, "tests/e2e/run.py", "--build", folder, "-j", "1", "fit_says"]),
             ("a call of cuBLAS", [sys.executable, "tests/e2e/run.py", "--build", folder, "-j", "1", "cublas"]))
    for name, words in tasks:
        with tempfile.TemporaryDirectory() as counts:
            subprocess.run(words, input=b"RuntimeError: CUDA error: invalid device ordinal\nend\n", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**os.environ, "GCOV_PREFIX": counts})
            found = visited(folder, counts)
        print("  %s: %d files: %s" % (name, len(found), ", ".join("%s %d" % i for i in sorted(collections.Counter(room(f) for f in found).items()))))


PARTS = {f.__name__: f for f in (rooms, includes, backwards, functions, literals, twice, rules, start, walks)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", choices=[*PARTS, []])
    p.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    p.add_argument("--build", help="folder that make has filled, for `start`; else build of the tree")
    o = p.parse_args()
    os.chdir(o.root)
    o.build = os.path.abspath(o.build or "build")
    for name in o.parts or [n for n in PARTS if n != "walks"]:
        print(name)
        PARTS[name](o)


if __name__ == "__main__":
    main()
