#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which rules of kb/causes never matched in any test.

    tools/check_rules.py FIRED [--strict]    FIRED: the file that CUWHY_RULES_FIRED named while the tests ran, one
                                             "cause/rule" a line; --strict: fail when a rule is not in it
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def rules():
    """Every rule and every piece of evidence as "cause/rule", in the order of the files, with its certainty or grade."""
    out = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "kb", "causes", "*.md"))):
        with open(path, encoding="utf-8") as f:
            header = f.read().split("\n---\n")[1]
        for sure, name in re.findall(r"^(?:when )?(certain|likely|possible|for|against|excluded) ([a-z0-9-]+):", header, re.M):
            out["%s/%s" % (os.path.basename(path)[:-3], name)] = sure
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        fired = set(f.read().split("\n"))
    known = rules()
    never = [name for name in known if name not in fired]
    for name in never:
        print("never matched: %-8s  %s" % (known[name], name))
    print("rules: %d of %d matched in some test, %d never did" % (len(known) - len(never), len(known), len(never)))
    return 1 if never and "--strict" in sys.argv[2:] else 0


if __name__ == "__main__":
    sys.exit(main())
