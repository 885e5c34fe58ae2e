#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what the documents mention that does not exist; prints nothing if all is well.

    tools/check_docs.py BUILD

Links and their headings, pages that the index of their folder does not list, files, options of cuwhy's commands, make targets,
cuwhy's own environment variables, and words that a native reader stops at (docs/develop/voice.md).
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
MORE = ("docs/**/*.md", "src/**/README.md")
VOICE = "docs/develop/voice.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
BLOCK = re.compile(r"^(?: {4}|\t)(.*)$", re.M)
PATH = re.compile(r"(?:src|include|kb|tests|tools|docs|examples|python|web)/[\w./*-]*\w|[\w-]+\.(?:c|h|def|py|sh|S)")
MADE_UP = {"case.sh", "train.py"}       # placeholder names
OPTION = re.compile(r"^ +(?:-(\w), )?--([\w-]+)(?:\[=[A-Z]+\])?(?: ([A-Z\w\[\]:.,=]+(?: \.\.\.)?))?(?:  |$)", re.M)


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def headings(text):
    """The anchors that a renderer makes of headings."""
    found = re.findall(r"^#+ +(.*?)\s*$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def bad_links(document, text):
    for target in LINK.findall(CODE.sub("", BLOCK.sub("", FENCED.sub("", text)))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path else document
        if not os.path.exists(full):
            yield "links to %s, which does not exist" % target
        elif anchor and anchor not in headings(read(full)):
            yield "links to %s, which has no such heading" % target


def unlisted(folder):
    """Pages that nobody finds: the README.md of their folder has no link to them."""
    listed = set(LINK.findall(read(os.path.join(folder, "README.md"))))
    for page in sorted(glob.glob(os.path.join(folder, "*.md"))):
        if os.path.basename(page) not in listed | {"README.md"}:
            yield "%s is not listed in the README.md beside it" % page


def bad_paths(text, names):
    for word in CODE.findall(text):
        if not PATH.fullmatch(word) or word in MADE_UP:
            continue
        there = glob.glob(word) if "/" in word else word in names
        if not there:
            yield "names %s" % word


def options_of(build):
    """{command: {option: takes a value}}, from what -h prints."""
    cuwhy, found = os.path.join(build, "cuwhy"), {}
    for command in subprocess.run([cuwhy, "_document", "commands"], capture_output=True, text=True).stdout.split():
        text = subprocess.run([cuwhy, command, "-h"], capture_output=True, text=True).stdout
        found[command] = {}
        for short, long, value in OPTION.findall(text):
            found[command].update({name: bool(value) for name in ("--" + long, short and "-" + short) if name})
    return found


def bad_options(text, options):
    for piece in CODE.findall(text) + BLOCK.findall(text):
        for command, rest in re.findall(r"(?<![\w.-])cuwhy (\w+)((?: +[^\s|]+)*)", piece.split("  ")[0]):
            words = re.split(r"\s+", rest.strip()) if command in options else []
            while words and words[0]:
                word = words.pop(0).rstrip("'\"`,;:.)")
                name, equals, _ = word.partition("=")
                if re.match(r"--?[a-z]", word):
                    for each in re.split(r"\|", name):
                        if each not in options[command]:
                            yield "gives `cuwhy %s` the option %s" % (command, each)
                    if options[command].get(name) and not equals:
                        words[:1] = []
                elif command == "run" or word == "--":
                    break       # the rest is the program's


def bad_targets(text, targets):
    for piece in CODE.findall(text) + BLOCK.findall(text):
        for word in re.findall(r"(?:^|[ `])make ([a-z][\w-]*)", piece.split("  ")[0]):
            if word not in targets:
                yield "calls `make %s`" % word


def bad_variables(text, sources):
    for name in set(re.findall(r"\bCUWHY_[A-Z_]+\b", text)):
        if '"%s"' % name not in sources:
            yield "names the variable %s" % name


def words_to_avoid(page):
    """Those that the table below "Words" lists."""
    rows = re.findall(r"^\| ([\w, ]+) \|", page.split("\n## Words\n")[1], re.M)
    return [word for row in rows if row != "word" for word in row.split(", ")]


def bad_words(text, avoid):
    for word in avoid:
        if re.search(r"\b%s\b" % word, FENCED.sub("", text), re.I):
            yield "says '%s': docs/develop/voice.md has another word" % word


def main():
    options = options_of(os.path.abspath(sys.argv[1]))
    os.chdir(ROOT)
    names = {name for folder in ("include", "kb", "python", "src", "tests", "tools", "web/src", "examples", "docs")
             for _, _, files in os.walk(folder) for name in files} | set(os.listdir("web"))
    targets = set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), re.M))
    sources = "".join(read(p) for p in glob.glob("src/**/*.c", recursive=True) + glob.glob("src/*/*/*.def") + glob.glob("python/cuwhy/*.py") + glob.glob("tests/*/*.[ch]"))
    avoid = words_to_avoid(read(VOICE))
    if len(options) < 6 or not options["run"].get("--out"):
        print("cannot read the options of `cuwhy run -h`")
    for folder in ("docs", "docs/causes", "docs/develop", "docs/lab"):
        for problem in unlisted(folder):
            print(problem)
    for document in DOCUMENTS + sorted(path for pattern in MORE for path in glob.glob(pattern, recursive=True)):
        text = read(document)
        for problem in [*bad_links(document, text), *bad_paths(text, names), *bad_options(text, options), *bad_targets(text, targets),
                        *bad_variables(text, sources), *bad_words("" if document == VOICE else text, avoid)]:
            print("%s %s" % (document, problem))


if __name__ == "__main__":
    main()
