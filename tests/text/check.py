# SPDX-License-Identifier: Apache-2.0
"""Explains texts with `cuwhy explain --json` and compares the causes: the public reports (../shared/cases, when they are there),
our own texts (tests/text/own), clean logs and unrelated failures (tests/text/clean), and the examples of the cause files."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import advice  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASES = os.path.join(os.path.dirname(ROOT), "shared", "cases", "cases.jsonl")
flaws = set()  # of the advice of any answer


def explain(cuwhy, paths):
    done = subprocess.run([cuwhy, "explain", "--json"] + paths, capture_output=True, text=True, errors="replace")
    if not done.stdout.strip():
        raise SystemExit("no answer for %s: %s" % (paths, done.stderr))
    answer = json.loads(done.stdout)
    for found in advice.flaws(answer):
        flaws.add("%s: %s" % (answer.get("cause"), found))
    return answer, done.returncode


def ranked(answer):
    if "failure" in answer:
        return ["failure"]
    list_ = [c["cause"] for c in answer["candidates"]]
    return list_ if list_ else [answer["cause"]]


def judge_text(cuwhy, parts):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in parts:
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w", encoding="utf-8", newline="") as f:
                f.write(text)
        return explain(cuwhy, paths)


def check_cases(cuwhy, path, show):
    if not os.path.exists(path):
        print("text: SKIPPED: the public reports are not here (%s)" % path)
        return True
    first = three = n = alone = 0
    wrong = []
    for line in open(path, encoding="utf-8"):
        case = json.loads(line)
        parts = [("log.txt", case["text"] + "\n")]
        only, _ = judge_text(cuwhy, parts)
        if case["env"]:
            parts.append(("env.txt", case["env"] + "\n"))
        answer, _ = judge_text(cuwhy, parts)
        found = ranked(answer)
        n += 1
        first += found[0] == case["class"]
        three += case["class"] in found[:3]
        alone += ranked(only)[0] == case["class"]
        if found[0] != case["class"]:
            wrong.append("  %-6s %-30s %s" % (case["id"], case["class"], ", ".join(
                "%s (%s)" % (c["cause"], c["certainty"]) for c in answer.get("candidates", [])[:4]) or found[0]))
        if show:
            print("  %-6s %-30s %-30s %s" % (case["id"], case["class"], found[0], answer.get("certainty")))
    print("text: public reports: right cause first in %d of %d, among the first three in %d; first in %d without the environment"
          % (first, n, three, alone))
    print("\n".join(wrong))
    return first >= 80 and three >= 86


def read_own(path):
    """The first line is `# cause: id` (`a|b`: either may lead), the rest the text; `=== name` begins another file."""
    with open(path, encoding="utf-8", newline="") as f:
        head, _, text = f.read().partition("\n")
    parts = []
    for i, part in enumerate(text.split("\n=== ")):
        name, body = ("log.txt", part) if i == 0 else part.split("\n", 1)
        parts.append((name, body))
    return head.split(":", 1)[1].strip().split("|"), parts


def check_folder(cuwhy, folder, what):
    good = n = 0
    wrong = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".txt"):
            continue
        wanted, parts = read_own(os.path.join(folder, name))
        answer, status = judge_text(cuwhy, parts)
        found = ranked(answer)
        n += 1
        ok = found[0] in wanted and status == (0 if found[0] == "none" else 1)
        good += ok
        if not ok:
            wrong.append("  %-34s wants %-30s has %s" % (name, "|".join(wanted), ", ".join(
                "%s (%s)" % (c["cause"], c["certainty"]) for c in answer.get("candidates", [])[:4]) or found[0]))
    print("text: %s: %d of %d" % (what, good, n))
    if wrong:
        print("\n".join(wrong))
    return good == n and n > 0


def dress(text, how):
    """The same text as other programs pass it on."""
    lines = text.split("\n")
    if how == "ranks":
        return "\n".join("[rank0]: " + x for x in lines)
    if how == "windows":
        return "\r\n".join("\033[31m%s\033[0m" % x if x else x for x in text.replace("\r", "").split("\n"))
    if how == "times":
        return "\n".join("2025-03-04 11:12:13,%03d %s" % (i % 1000, x) for i, x in enumerate(lines))
    noise = "".join("read shard %06d of the data set from the cache\n" % i for i in range(9000))
    return noise + text + "\n" + noise


def check_clothes(cuwhy, folder):
    """A text gets the same answer whatever surrounds its lines."""
    good = n = 0
    wrong = []
    for name in sorted(os.listdir(folder)):
        wanted, parts = read_own(os.path.join(folder, name))
        if name.startswith("form-") or len(parts) > 1:
            continue
        for how in ("ranks", "windows", "times", "long"):
            if how == "long" and wanted[0] in ("oom-graph-retention", "oom-growth"):
                continue    # figures of memory are followed near errors and at the ends of a log only
            answer, _ = judge_text(cuwhy, [("log.txt", dress(parts[0][1], how))])
            n += 1
            if ranked(answer)[0] in wanted:
                good += 1
            else:
                wrong.append("  %-34s as %-8s wants %-30s has %s" % (name, how, "|".join(wanted), ranked(answer)[0]))
    print("text: our own texts in other clothes: %d of %d" % (good, n))
    print("\n".join(wrong))
    return good == n


def examples():
    folder = os.path.join(ROOT, "kb", "causes")
    for name in sorted(os.listdir(folder)):
        text, inside, asks = [], False, False
        for line in open(os.path.join(folder, name), encoding="utf-8"):
            asks |= line.startswith("when ") and ("says(" in line or "text." in line)
            if line.startswith("## "):
                inside = line.strip() == "## Example"
            elif inside:
                text.append(line[4:] if line.strip() else "\n")
        yield name[:-3], "".join(text).strip("\n"), asks


def check_examples(cuwhy):
    good = n = 0
    ok = True
    for cause, text, asks in examples():
        if not text:
            if asks:    # the doctor's own causes are not told from texts
                print("  %s has no example" % cause)
                ok = False
            continue
        answer, _ = judge_text(cuwhy, [("example.txt", text + "\n")])
        n += 1
        if ranked(answer)[0] == cause:
            good += 1
        else:
            print("  the example of %-30s gives %s" % (cause, ", ".join(ranked(answer)[:4])))
    print("text: examples of the cause files: %d of %d" % (good, n))
    return ok and good == n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", nargs="?", default="build")
    p.add_argument("--cases", default=CASES)
    p.add_argument("--show", action="store_true", help="print every case")
    p.add_argument("--only", help="cases, own, clothes, clean or examples")
    o = p.parse_args()
    cuwhy = os.path.join(ROOT, o.build, "cuwhy")
    tests = {"cases": lambda: check_cases(cuwhy, o.cases, o.show),
             "own": lambda: check_folder(cuwhy, os.path.join(HERE, "own"), "our own texts"),
             "clothes": lambda: check_clothes(cuwhy, os.path.join(HERE, "own")),
             "clean": lambda: check_folder(cuwhy, os.path.join(HERE, "clean"), "clean logs and unrelated failures"),
             "examples": lambda: check_examples(cuwhy)}
    results = [run() for name, run in tests.items() if not o.only or o.only == name]
    print("text: flaws of the advice: %d" % len(flaws))
    print("".join("  %s\n" % found for found in sorted(flaws)), end="")
    sys.exit(0 if all(results) and not flaws else 1)


if __name__ == "__main__":
    main()
