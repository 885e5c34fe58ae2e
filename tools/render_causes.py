#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates docs/causes/ from kb/causes/: one page per cause, for people, and a list.

    tools/render_causes.py [--check]    write the pages; --check: only list those out of date
"""
import os
import re
import sys

import check_programs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KB = os.path.join(ROOT, "kb", "causes")
OUT = os.path.join(ROOT, "docs", "causes")
HEAD = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Made from kb/causes/%s.md by tools/render_causes.py -->\n"


def read(path):
    with open(path, encoding="utf-8") as f:
        head, body = re.match(r".*?---\n(.*?)\n---\n(.*)", f.read(), re.S).groups()
    title = re.search(r"^title: (.*)$", head, re.M).group(1)
    parts = re.split(r"^## (.*)\n", body, flags=re.M)
    return title, head, parts[0].strip(), dict(zip(parts[1::2], parts[2::2]))


def plain(text):
    """Templates as people read them: {oom.free:bytes} stands for a value that the verdict fills in."""
    text = re.sub(r"\{\{", "\0", text)
    text = re.sub(r"\{([a-z_.]+)(:[a-z]+)?\}", r"*\1*", text)
    return text.replace("\0", "{")


def advice(text):
    out = []
    for item in re.split(r"^- ", text, flags=re.M)[1:]:
        lines = item.rstrip().split("\n")
        sentence = " ".join(x.strip() for x in lines if not x.startswith("    "))
        sentence = re.sub(r"^\[(?:[^\]\"]|\"[^\"]*\")*\] ?", "", sentence)
        command = [x[4:] for x in lines if x.startswith("    ")]
        out.append("- " + plain(sentence))
        if command:
            out += ["", "  ```sh"] + ["  " + plain(x) for x in command] + ["  ```", ""]
    return "\n".join(out).rstrip()


def ways(head):
    rows = re.findall(r"^when (certain|likely|possible)[^:]*: (.*?)(?=^\S|\Z)", head + "\n", re.S | re.M)
    out = []
    for sure, text in rows:
        because = re.search(r"^  because: (.*)$", text, re.M)
        if because:
            line = "- %s: %s" % (sure, plain(because.group(1)))
            if line not in out:
                out.append(line)
    return "\n".join(out)


def page(cause):
    title, head, definition, sections = read(os.path.join(KB, cause + ".md"))
    out = [HEAD % cause + "# " + cause, "", title + ".", "", definition, ""]
    if ways(head):
        out += ["## How it is recognized", "", ways(head), ""]
    if sections.get("Fix", "").strip():
        out += ["## What to do", "", advice(sections["Fix"]), ""]
    for name in ("What would settle it", "Not to be confused with"):
        if sections.get(name, "").strip():
            out += ["## " + name, "", sections[name].strip(), ""]
    if sections.get("Example", "").strip():
        out += ["## Example", "", "```", "\n".join(x[4:] for x in sections["Example"].strip("\n").split("\n")), "```", ""]
    program = check_programs.program_of(os.path.join(KB, cause + ".md"))
    if program:
        out += ["## A program that shows it", "", "```python", check_programs.shown(os.path.join(ROOT, program)).strip("\n"), "```", ""]
    return title, "\n".join(out).rstrip() + "\n"


def main():
    check = "--check" in sys.argv
    pages = {}
    index = ["# Causes", "", "Every cause that cuwhy knows; `cuwhy explain CAUSE` prints the same. Made from `kb/causes`.", "",
             "| cause | what it is |", "| --- | --- |"]
    for name in sorted(os.listdir(KB)):
        title, pages[name] = page(name[:-3])
        index.append("| [%s](%s) | %s |" % (name[:-3], name, title))
    pages["README.md"] = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n" + "\n".join(index) + "\n"
    os.makedirs(OUT, exist_ok=True)
    for name in sorted(set(os.listdir(OUT)) - set(pages)):
        print("docs/causes/%s has no cause" % name)
        if not check:
            os.unlink(os.path.join(OUT, name))
    for name, text in pages.items():
        path = os.path.join(OUT, name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old == text:
            continue
        if check:
            print("docs/causes/%s is out of date: run tools/render_causes.py" % name)
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)


if __name__ == "__main__":
    main()
