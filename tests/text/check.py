# SPDX-License-Identifier: Apache-2.0
"""Explains texts and compares the causes: the labelled reports (tests/text/reports), the public reports (../shared/cases, when they are
there), our own texts (tests/text/own), all of them in other clothes, clean logs and unrelated failures (tests/text/clean), and the examples
of the cause files. Thousands of texts: tests/text/many.c explains them in one process per core; clean logs and examples are given to the
program itself."""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import advice  # noqa: E402
import clothes  # noqa: E402
import reports  # noqa: E402
import hidden  # noqa: E402
import joined  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASES = os.path.join(os.path.dirname(ROOT), "shared", "cases", "cases.jsonl")
TUNED_FIRST, TUNED_THREE = 0.85, 0.90  # of the tuned reports
TABLE_MIN = 4  # reports of a package that has a row of its own
PLACE = re.compile(r"line \d+: |kernel log: ")
chosen = None  # the one own text, clean log or example that was asked for
flaws = set()  # of the advice of any answer
jobs = max(1, min(4, len(os.sched_getaffinity(0))))


def note_flaws(answer):
    for found in advice.flaws(answer):
        flaws.add("%s: %s" % (answer.get("cause"), found))
    if answer.get("cause", "none") != "none" and not any(PLACE.search(one["text"]) for one in answer.get("evidence", [])):
        flaws.add("%s: it quotes no line of the text (%s)" % (answer["cause"], answer.get("because")))


def explain(cuwhy, path):
    """What the program itself says about a file: (answer, exit status)."""
    done = subprocess.run([cuwhy, "explain", "--json", path], capture_output=True, text=True, errors="replace")
    if not done.stdout.strip():
        raise SystemExit("no answer for %s: %s" % (path, done.stderr))
    answer = json.loads(done.stdout)
    note_flaws(answer)
    return answer, done.returncode


def explain_texts(cuwhy, texts):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        paths = []
        for i, text in enumerate(texts):
            paths.append(os.path.join(folder, "%d.txt" % i))
            with open(paths[-1], "w", encoding="utf-8", newline="") as f:
                f.write(text)
        return list(pool.map(lambda path: explain(cuwhy, path), paths))


def run_many(build, paths, options):
    done = subprocess.run([os.path.join(ROOT, build, "tests", "many")] + options, input="".join("\t".join(p) + "\n" for p in paths),
                          capture_output=True, text=True, errors="replace")
    lines = done.stdout.splitlines()
    if len(lines) != len(paths):
        raise SystemExit("%d answers for %d texts: %s" % (len(lines), len(paths), done.stderr))
    return lines


def explain_many(build, texts, *options):
    """The answer to each text, a line. A text is a list of files: (name, contents)."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        paths = []
        for i, parts in enumerate(texts):
            paths.append([])
            for name, text in parts:
                paths[-1].append(os.path.join(folder, "%d-%s" % (i, name)))
                with open(paths[-1][-1], "wb") as f:
                    f.write(text if isinstance(text, bytes) else text.encode())
        shares = [paths[i::jobs] for i in range(jobs)]
        lines = [None] * len(paths)
        for i, answers in enumerate(pool.map(lambda share: run_many(build, share, list(options)), shares)):
            lines[i::jobs] = answers
        return lines


def answers_to(build, texts):
    answers = [json.loads(line) for line in explain_many(build, texts, "--json")]
    for answer in answers:
        note_flaws(answer)
    return answers


def causes_of(build, texts):
    """The causes of each, the likeliest first."""
    return [line.split() for line in explain_many(build, texts)]


def ranked(answer):
    if "failure" in answer:
        return ["failure"]
    list_ = [c["cause"] for c in answer["candidates"]]
    return list_ if list_ else [answer["cause"]]


def candidates(answer):
    return ", ".join("%s (%s)" % (c["cause"], c["certainty"]) for c in answer.get("candidates", [])[:4]) or ranked(answer)[0]


def note_decided(build, where, answers):
    """The rules that were the first candidate's, for tools/check_rules.py --decided, beside all that only words can fulfill."""
    firsts = [answer["candidates"][0] for answer in answers if answer.get("candidates")]
    folder = os.path.join(ROOT, build, "decided")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "about"), "w", encoding="utf-8") as f:
        f.write(subprocess.run([os.path.join(ROOT, build, "tests", "many"), "--rules"], capture_output=True, text=True, check=True).stdout)
    with open(os.path.join(folder, where), "w", encoding="utf-8") as f:
        f.write("".join("%s\n" % rule for rule in sorted({"%s/%s" % (c["cause"], c["rule"]) for c in firsts if c.get("rule")})))


def decide(build, path):
    """Only that: the public reports of this repository, and those of a file or folder, where it is there."""
    note_decided(build, "reports", answers_to(build, [reports.parts(report) for report in reports.read_all()]))
    paths = sorted(glob.glob(os.path.join(path, "*.jsonl"))) if os.path.isdir(path) else [path] if os.path.exists(path) else []
    if not paths:
        print("text: SKIPPED: no other reports than this repository's are here (%s)" % path)
    more = [report for name in paths for report in reports.read(name)]
    note_decided(build, "others", answers_to(build, [reports.parts(report) for report in more]) if more else [])
    return True


def check_cases(build, path, show):
    if not os.path.isfile(path):
        print("text: SKIPPED: the public reports are not here (%s)" % path)
        return True
    first = three = alone = 0
    wrong, said = [], {"certain": [0, 0], "likely": [0, 0], "possible": [0, 0]}
    cases = reports.read(path)
    answers = answers_to(build, [reports.parts(case) for case in cases])
    note_decided(build, "others", answers)
    without = answers_to(build, [reports.parts(case)[:1] for case in cases])
    for case, answer, only in zip(cases, answers, without):
        found = ranked(answer)
        first += found[0] == case["class"]
        said[answer["certainty"]][0] += found[0] == case["class"]
        said[answer["certainty"]][1] += 1
        three += case["class"] in found[:3]
        alone += ranked(only)[0] == case["class"]
        if found[0] != case["class"]:
            wrong.append("  %-6s %-30s %s" % (case["id"], case["class"], candidates(answer)))
        if show:
            print("  %-6s %-30s %-30s %s" % (case["id"], case["class"], found[0], answer.get("certainty")))
    print("text: public reports: right cause first in %d of %d, among the first three in %d; first in %d without the environment"
          % (first, len(cases), three, alone))
    print("text: public reports: " + ", ".join("%s right in %d of %d" % (grade, *count) for grade, count in said.items()))
    print("\n".join(wrong))
    return first >= 80 and three >= 86


class Score:
    """How many reports got the right answer."""

    def __init__(self):
        self.n = self.first = self.three = 0
        self.said = collections.Counter()
        self.wrong = collections.Counter()

    def add(self, report, answer):
        found, wanted = ranked(answer), reports.accepted(report)
        right = found[0] in wanted
        self.n += 1
        self.first += right
        self.three += any(cause in wanted for cause in found[:3])
        self.said[answer["certainty"]] += 1
        self.wrong[answer["certainty"]] += not right
        return right

    def join(self, other):
        self.n += other.n
        self.first += other.first
        self.three += other.three
        self.said += other.said
        self.wrong += other.wrong

    def share(self, part):
        return "%d of %d, %.1f %%" % (part, self.n, 100.0 * part / self.n)

    def print(self, what):
        print("text: reports, %-22s first %s; among three %s; wrong when %s" % (what + ":", self.share(self.first), self.share(self.three), ", ".join(
            "%s %d of %d" % (word, self.wrong[word], self.said[word]) for word in ("certain", "likely", "possible") if self.said[word])))


def check_reports(build, show):
    """Both halves; only the tuned one has a floor: a floor of the kept one would make people tune for it."""
    all_ = reports.read_all()
    by_half = collections.defaultdict(Score)
    by_package = collections.defaultdict(Score)
    wrong = []
    answers = answers_to(build, [reports.parts(report) for report in all_])
    note_decided(build, "reports", answers)
    for report, answer in zip(all_, answers):
        half = reports.half(report)
        right = by_half[half].add(report, answer)
        by_package[report["package"].split("/")[0].lower()].add(report, answer)
        if not right and half == "tuned":   # which of the kept ones are wrong is not for reading
            wrong.append("  %-10s %-30s %s" % (report["id"], "|".join(reports.accepted(report)), candidates(answer)))
    others = Score()
    for package in [name for name, score in by_package.items() if score.n < TABLE_MIN]:
        others.join(by_package.pop(package))
    for half in reports.HALVES:
        by_half[half].print(half + " half")
    if show:
        print("\n".join(wrong))
        for package, score in sorted(by_package.items(), key=lambda row: (-row[1].n, row[0])):
            score.print(package)
        others.print("other packages")
    tuned = by_half["tuned"]
    return tuned.first >= TUNED_FIRST * tuned.n and tuned.three >= TUNED_THREE * tuned.n


def read_own(path):
    """The first line is `# cause: id` (`a|b`: either may lead), the rest the text."""
    with open(path, encoding="utf-8", newline="") as f:
        head, _, text = f.read().partition("\n")
    return head.split(":", 1)[1].strip().split("|"), text


def files_of(text):
    """`=== name` begins another file."""
    first, *others = text.split("\n=== ")
    return [("log.txt", first)] + [tuple(part.split("\n", 1)) for part in others]


def own_texts(folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".txt") and chosen in (None, name[:-4]):
            yield (name,) + read_own(os.path.join(folder, name))


def print_folder(what, names, wanted, answers):
    good = 0
    wrong = []
    for name, causes, answer in zip(names, wanted, answers):
        good += ranked(answer)[0] in causes
        if ranked(answer)[0] not in causes:
            wrong.append("  %-34s wants %-30s has %s" % (name, "|".join(causes), candidates(answer)))
    print("text: %s: %d of %d" % (what, good, len(names)))
    if wrong:
        print("\n".join(wrong))
    return len(names) - good


def check_own(build):
    names, wanted, texts = zip(*own_texts(os.path.join(HERE, "own")))
    return not print_folder("our own texts", names, wanted, answers_to(build, [files_of(text) for text in texts]))


def check_clean(cuwhy):
    """The program itself: nothing found, exit status 0. One alarm in 120 is one too many for a person, but a text that can be read
    in two ways is no reason to bend a rule."""
    names, wanted, texts = zip(*own_texts(os.path.join(HERE, "clean")))
    answers = explain_texts(cuwhy, texts)
    alarms = print_folder("clean logs and unrelated failures", names, wanted, [answer for answer, _ in answers])
    statuses = all(status == (0 if ranked(answer)[0] == "none" else 1) for answer, status in answers)
    if not statuses:
        print("  an exit status does not agree with its answer")
    return statuses and alarms * 120 <= len(names)


def right_texts(build, cases):
    """All texts that get the right answer as they are, in one file: (name, cause, text). Kept reports are not tried: what goes wrong with
    them would have to be read."""
    found = [(name, wanted, text) for name, wanted, text in own_texts(os.path.join(HERE, "own"))
             if not name.startswith("form-") and len(files_of(text)) == 1]
    if os.path.exists(cases):
        found += [(case["id"], [case["class"]], case["text"] + "\n" + case["env"]) for case in reports.read(cases)]
    found += [(report["id"], reports.accepted(report), report["text"] + "\n" + report["env"]) for report in reports.read_all()
              if reports.half(report) == "tuned"]
    answers = answers_to(build, [[("log.txt", text)] for _, _, text in found])
    return [(name, ranked(answer)[:1], text) for (name, wanted, text), answer in zip(found, answers)
            if ranked(answer)[0] in wanted and not is_told(answer)]


def is_told(answer):
    """By a person, in a sentence: those have no clothes of logs."""
    return any("told, not shown" in evidence["text"] for evidence in answer["evidence"])


def check_clothes(build, cases, only, every, show):
    """A text gets the same answer whatever surrounds its lines. Each text wears one kind of clothes in `every`."""
    ok = True
    texts = right_texts(build, cases)
    for number, (kind, (dress, share)) in enumerate(clothes.KINDS.items()):
        if only and kind not in only:
            continue
        # figures of memory are followed near errors and at the ends of a log only
        dressed = [(name, wanted, clothes.put_on(dress, text, "none" not in wanted)) for name, wanted, text in texts[number % every::every]
                   if kind != "long" or wanted[0] not in ("oom-graph-retention", "oom-growth")]
        answers = causes_of(build, [[("log.txt", text)] for _, _, text in dressed])
        wrong = [(name, wanted, answer) for (name, wanted, _), answer in zip(dressed, answers) if answer[0] not in wanted]
        good = len(dressed) - len(wrong)
        enough = good >= share * len(dressed)
        ok &= enough
        print("text: in other clothes: %-20s %d of %d, %.1f %%%s" % (kind, good, len(dressed), 100.0 * good / len(dressed),
                                                               "" if enough else " (too few)"))
        for name, wanted, answer in wrong if show or not enough else []:
            print("  %-34s wants %-30s has %s" % (name, "|".join(wanted), answer[0]))
    return ok


def examples():
    folder = os.path.join(ROOT, "kb", "causes")
    for name in sorted(os.listdir(folder)):
        if chosen not in (None, name[:-3]):
            continue
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
    told = [(cause, text) for cause, text, asks in examples() if text]
    for cause, text, asks in examples():
        if not text and asks:    # the doctor's own causes are not told from texts
            print("  %s has no example" % cause)
            ok = False
    for (cause, _), (answer, status) in zip(told, explain_texts(cuwhy, [text + "\n" for _, text in told])):
        n += 1
        if ranked(answer)[0] == cause and status == 1:
            good += 1
        else:
            print("  the example of %-30s gives %s" % (cause, ", ".join(ranked(answer)[:4])))
    print("text: examples of the cause files: %d of %d" % (good, n))
    return ok and good == n


def check_joined(cuwhy):
    wrong = joined.check(cuwhy)
    print("text: a failure with what tools print about the machine: %d complaints" % len(wrong))
    print("".join("  %s\n" % one for one in wrong), end="")
    return not wrong


def main():
    global chosen, jobs
    p = argparse.ArgumentParser()
    p.add_argument("build", nargs="?", default="build")
    p.add_argument("-j", "--jobs", type=int, default=jobs)
    p.add_argument("--cases", default=CASES)
    p.add_argument("--show", action="store_true", help="print every case, the tuned reports that are wrong, and a table by package")
    p.add_argument("--only", help="reports, cases, own, clothes, clean, examples, joined, secrets or decided")
    p.add_argument("--name", help="with --only own, clean or examples: the one file or cause of this name")
    p.add_argument("--kind", action="append", help="only these clothes")
    p.add_argument("--every", type=int, default=3, help="each text wears one kind of clothes in so many; 1: all of them")
    o = p.parse_args()
    jobs, chosen = o.jobs, o.name
    cuwhy = os.path.join(ROOT, o.build, "cuwhy")
    tests = {"reports": lambda: check_reports(o.build, o.show),
             "cases": lambda: check_cases(o.build, o.cases, o.show),
             "own": lambda: check_own(o.build),
             "clothes": lambda: check_clothes(o.build, o.cases, o.kind, 1 if o.kind else o.every, o.show),
             "clean": lambda: check_clean(cuwhy),
             "examples": lambda: check_examples(cuwhy),
             "joined": lambda: check_joined(cuwhy),
             "secrets": lambda: hidden.check(os.path.join(ROOT, o.build))}
    if o.only == "decided":
        sys.exit(0 if decide(o.build, o.cases) else 1)
    results = [run() for name, run in tests.items() if not o.only or o.only == name]
    print("text: flaws of the advice: %d" % len(flaws))
    print("".join("  %s\n" % found for found in sorted(flaws)), end="")
    sys.exit(0 if all(results) and not flaws else 1)


if __name__ == "__main__":
    main()
