#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `cuwhy doctor` on every machine in machines.txt and compares: check.py [-v] BUILD [NAME...]"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import advice
import tree

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 300  # for one answer: a hang is a failure


def read_table():
    """Rows of machines.txt as dictionaries, in their order."""
    rows = []
    with open(os.path.join(HERE, "machines.txt"), encoding="utf-8") as table:
        for line in table:
            words = shlex.split(line, comments=True)
            if words:
                row = dict(zip(("name", "exit", "cause", "certainty", "origin"), words))
                row["expect"] = [word.partition("=")[::2] for word in words[5:]]
                rows.append(row)
    return rows


def ask(build, arguments, ordinary_user=False):
    """Exit status and output of `cuwhy doctor`; a crash or a hang is an exception."""
    command = [os.path.join(build, "cuwhy"), "doctor", *arguments]
    kept = {k: v for k, v in os.environ.items() if k == "CUWHY_RULES_FIRED"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": "200", **kept},
                          user=65534 if ordinary_user and os.geteuid() == 0 else None, check=False)
    if done.returncode < 0 or done.returncode > 2:
        raise RuntimeError("it ended with %d: %s" % (done.returncode, done.stderr.decode(errors="replace")[-500:]))
    if done.stderr:
        raise RuntimeError("it wrote: " + done.stderr.decode(errors="replace")[:500])
    return done.returncode, done.stdout.decode("utf-8")


def first_choice(answer):
    fitting = [choice for choice in answer["recommend"] if choice["fits"]]
    return "%s/%s" % (fitting[0]["release"], fitting[0]["variant"]) if fitting else "none"


def differences(row, status, answer, text):
    """What differs from the table."""
    found = []

    def compare(what, has, wants):
        if has != wants:
            found.append("%s is %s, should be %s" % (what, has, wants))

    compare("the exit status", str(status), row["exit"])
    compare("the cause", answer["cause"], row["cause"])
    compare("the certainty", answer["certainty"], row["certainty"])
    lines = {check["id"]: check["status"] for check in answer["checks"]}
    for key, value in row["expect"]:
        if key == "says" and value not in text:
            found.append("it does not say '%s'" % value)
        elif key == "never" and value in text:
            found.append("it says '%s'" % value)
        elif key == "recommend":
            compare("the recommended build", first_choice(answer), value)
        elif key not in ("says", "never"):
            compare("check %s" % key, lines.get(key, "-"), value)
    if row["exit"] == "0":
        found.extend("check %s is %s" % item for item in lines.items() if item[1] in ("WARN", "FAIL"))
    return found


def judge(build, row):
    """(what the doctor says, differences, its text)"""
    with tempfile.TemporaryDirectory(prefix="cuwhy-doctor-") as scratch:
        bundle = os.path.join(HERE, "machines", row["name"] + ".json")
        arguments = [bundle] if os.path.exists(bundle) else tree.build(os.path.join(HERE, "trees", row["name"] + ".tree"), scratch)
        ordinary = tree.wants_ordinary_user(scratch)
        try:
            status, output = ask(build, ["--json", "--recommend", *arguments], ordinary)
            text_status, text = ask(build, ["--recommend", *arguments], ordinary)
        except (RuntimeError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
            return "-", [str(error)], ""
        finally:
            tree.release(scratch)
    answer = json.loads(output)
    found = differences(row, status, answer, text) + advice.flaws(answer)
    if text_status != status:
        found.append("the text's exit status is %d" % text_status)
    return answer["cause"], found, text


def check_files(rows):
    """Every file is in the table once."""
    named = sorted(row["name"] for row in rows)
    there = sorted(os.path.splitext(name)[0] for folder in ("machines", "trees") for name in os.listdir(os.path.join(HERE, folder)))
    return sorted(set(there) ^ set(named) | {name for name in named if named.count(name) > 1})


def main(arguments):
    verbose = "-v" in arguments
    build, *names = [word for word in arguments if word != "-v"]
    rows = read_table()
    odd = [] if names else check_files(rows)
    rows = [row for row in rows if not names or row["name"] in names]
    failed = len(odd)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda row: judge(build, row), rows))
    for name in odd:
        print("not ok - %s: it is not a file and a row of machines.txt" % name)
    for row, (cause, found, text) in zip(rows, results):
        failed += bool(found)
        print("%-7s %-26s %-29s %-9s %s" % ("not ok" if found else "ok", row["name"], cause, row["certainty"], row["origin"]))
        for line in found:
            print("        " + line)
        if text and (verbose or names):
            print(text)
    healthy = sum(row["exit"] == "0" for row in rows)
    own = sum(row["origin"] == "own" for row in rows)
    print("doctor: %d machines (%d healthy, %d not from reports), %d failed" % (len(rows), healthy, own, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
