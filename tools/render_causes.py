#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates docs/causes/: one page per cause, for people, from what `cuwhy explain --json CAUSE` says, and a list. Build first.

    tools/render_causes.py [--check] [BUILD]    write the pages; --check: only list those out of date
"""
import json
import os
import re
import subprocess
import sys

import advised

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KB = os.path.join(ROOT, "kb", "causes")
OUT = os.path.join(ROOT, "docs", "causes")
HEAD = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Made from kb/causes/%s.md by tools/render_causes.py -->\n"


def ask(build, cause):
    done = subprocess.run([os.path.join(ROOT, build, "cuwhy"), "explain", "--json", cause], capture_output=True, text=True)
    return json.loads(done.stdout)


def fence(language, text, indent=""):
    return [indent + "```" + language] + [(indent + line).rstrip() for line in text.strip("\n").split("\n")] + [indent + "```"]


def advice(fixes):
    out = []
    for fix in fixes:
        out.append("- " + fix["text"])
        if fix["command"]:
            out += [""] + fence(advised.language(fix["command"]), fix["command"], "  ") + [""]
    return "\n".join(out).rstrip()


def example(found):
    out = ["## Example", ""] + fence("text", found["text"])
    if found["title"]:
        out += ["", "The answer:", ""] + fence("text", "\n".join(["cuwhy: " + found["title"]] + ["  " + why for why in found["why"]]))
    return out + [""]


def page(cause, it):
    out = [HEAD % cause + "# " + cause, "", it["title"] + ".", "", it["definition"], ""]
    if it["reasons"]:
        out += ["## How it is recognized", ""] + ["- %s: %s" % (x["certainty"], x["because"]) for x in it["reasons"]] + [""]
    if it["fix"]:
        out += ["## What to do", "", "Versions, sizes and names are those of an example.", "", advice(it["fix"]), ""]
    for name, key in (("What would settle it", "settle"), ("Not to be confused with", "confused")):
        if it[key]:
            out += ["## " + name, "", re.sub(r"^(?=`)", "- ", it[key].strip(), flags=re.M), ""]
    if it["example"]:
        out += example(it["example"])
    if it["program"]:
        out += ["## A program that shows it", ""] + fence("python", it["program"]) + [""]
    return "\n".join(out).rstrip() + "\n"


def main():
    check = "--check" in sys.argv
    build = next((word for word in sys.argv[1:] if not word.startswith("-")), "build")
    pages = {}
    index = ["# Causes", "", "Every cause that cuwhy knows; `cuwhy explain CAUSE` prints the same. Made from `kb/causes`.", "",
             "| cause | what it is |", "| --- | --- |"]
    for name in sorted(os.listdir(KB)):
        it = ask(build, name[:-3])
        pages[name] = page(name[:-3], it)
        index.append("| [%s](%s) | %s |" % (name[:-3], name, it["title"]))
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
