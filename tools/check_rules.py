#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which rules of kb/causes earn their place.

    tools/check_rules.py FIRED [--strict]    those that never matched in any test. FIRED: the file that CUWHY_RULES_FIRED named while the
                                             tests ran, one "cause/rule" a line; --strict: fail when a rule is not in it
    tools/check_rules.py --decided FOLDER [--list]
                                             those that only words can fulfill, and that never decided an answer on reports of others: that
                                             were no answer's first candidate. FOLDER: build/decided, which tests/text/check.py fills. Fails
                                             when there are more of them than tests/text/undecided.txt says: a rule that only our own texts
                                             need is one too many
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STORED = os.path.join(ROOT, "tests", "text", "undecided.txt")


def headers():
    for path in sorted(glob.glob(os.path.join(ROOT, "kb", "causes", "*.md"))):
        with open(path, encoding="utf-8") as f:
            yield os.path.basename(path)[:-3], f.read().split("\n---\n")[1]


def rules():
    """Every rule and every piece of evidence as "cause/rule", in the order of the files, with its certainty or grade."""
    return {"%s/%s" % (cause, name): sure for cause, header in headers()
            for sure, name in re.findall(r"^(?:when )?(certain|likely|possible|for|against|excluded) ([a-z0-9-]+):", header, re.M)}


def read(path):
    with open(path, encoding="utf-8") as f:
        return set(f.read().split("\n"))


def matched(path, strict):
    known, fired = rules(), read(path)
    never = [name for name in known if name not in fired]
    for name in never:
        print("never matched: %-8s  %s" % (known[name], name))
    print("rules: %d of %d matched in some test, %d never did" % (len(known) - len(never), len(known), len(never)))
    return 1 if never and strict else 0


def decided(folder, listing):
    """The number that is stored is of this repository's reports, so that it is the same everywhere."""
    about = [name for name in rules() if name in read(os.path.join(folder, "about"))]
    here, elsewhere = read(os.path.join(folder, "reports")), os.path.join(folder, "others")
    never = [name for name in about if name not in here]
    others = set(never) & (read(elsewhere) if os.path.exists(elsewhere) else set())
    with open(STORED, encoding="utf-8") as f:
        most = int(re.search(r"^(\d+)$", f.read(), re.M).group(1))
    if listing or len(never) > most:
        print("\n".join("never decided: %s%s" % (name, "  (it did on reports from elsewhere)" if name in others else "") for name in never))
    print("rules: %d of %d about words decided no answer on reports of others (%d of them on those from elsewhere); at most %d may" % (
        len(never), len(about), len(others), most))
    if len(never) > most:
        print("hint: let a rule that reports need do it, or add a labeled report that needs this one (CONTRIBUTING.md)")
    elif len(never) < most:
        print("hint: write %d into tests/text/undecided.txt" % len(never))
    return 1 if len(never) > most else 0


def main():
    if sys.argv[1] == "--decided":
        return decided(sys.argv[2], "--list" in sys.argv)
    return matched(sys.argv[1], "--strict" in sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
