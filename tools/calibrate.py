#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `cuwhy explain` is right when it says certain, likely or possible, over texts with a known cause; and which rules
of kb/causes have not earned the certainty that they claim.

    tools/calibrate.py [BUILD] [--rules]
    tools/calibrate.py [BUILD] --unseen [--show]

Reports are those of tests/text/reports, and the public cases. Of the half that nobody tunes for only the totals are printed. Our own
texts (tests/text/own) are counted apart: they were written together with the rules.

A rule earns its certainty by leave-one-out: for each report, the estimate of the rule that decided it comes from the other reports
alone. It is the share in which the rule was right, drawn toward the share of all rules with that certainty (as if PRIOR more reports
had been seen); a rule that no other report shows has only that. certain takes 99 % and a report of its own, likely 85 %.

--unseen estimates how a report fares that nobody has seen. Each is explained without the rules, the messages and the words of signs
that no report of another source uses (they may have been written because of it), and with kb/words.def learned without it. What this
leaves in place is the order of rules, which was tuned for the reports, too: it flatters. Clean logs (tests/text/clean) are explained
with words learned without them."""
import argparse
import collections
import json
import math
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "text"))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check  # noqa: E402
import check_rules  # noqa: E402
import learn_words  # noqa: E402
import reports  # noqa: E402

GRADES = ("certain", "likely", "possible")
NEEDED = {"certain": 0.99, "likely": 0.85, "possible": 0.0}
PRIOR = 2.0

Answer = collections.namedtuple("Answer", "id rule certainty right")


def wilson(right, n, z=1.96):
    """The interval in which the true share lies in 95 of 100 cases."""
    if not n:
        return 0.0, 1.0
    p = right / n
    middle = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)


def labeled(half):
    """(id, causes that are right, files) of one half of tests/text/reports, and of the public cases with the tuned one."""
    found = [(r["id"], reports.accepted(r), reports.parts(r)) for r in reports.read_all() if reports.half(r) == half]
    if half == reports.HALVES[0] and os.path.exists(check.CASES):
        found += [(r["id"], [r["class"]], reports.parts(r)) for r in reports.read(check.CASES)]
    return found


def own():
    folder = os.path.join(ROOT, "tests", "text", "own")
    return [(name, wanted, check.files_of(text)) for name, wanted, text in check.own_texts(folder)]


def answers(build, texts):
    found = []
    for (name, wanted, _), answer in zip(texts, check.answers_to(build, [parts for _, _, parts in texts])):
        lead = (answer["candidates"] or [{}])[0]
        rule = "%s/%s" % (answer["cause"], lead["rule"]) if lead.get("rule") else answer["cause"]
        found.append(Answer(name, rule, answer["certainty"], answer["cause"] in wanted))
    return found


def table(title, found):
    print("%-34s %9s %5s %6s %9s   %s" % (title, "", "said", "right", "share", "95 % interval"))
    for grade in GRADES:
        list_ = [a for a in found if a.certainty == grade]
        right = sum(a.right for a in list_)
        low, high = wilson(right, len(list_))
        print("%-34s %9s %5d %6d %8.1f%%   %.1f to %.1f%%" % (
            "", grade, len(list_), right, 100.0 * right / len(list_) if list_ else 0, 100 * low, 100 * high))


def tally(found):
    count = collections.defaultdict(lambda: [0, 0])
    for a in found:
        count[a.rule][0] += a.right
        count[a.rule][1] += 1
    return count


def estimate(right, n, all_right, all_n):
    share = (all_right + 1.0) / (all_n + 1.0) if all_n else 1.0
    return (right + PRIOR * share) / (n + PRIOR)


def earned(estimated, seen):
    for grade in GRADES:
        if estimated >= NEEDED[grade] and (seen or grade != "certain"):
            return grade


def leave_one_out(found):
    """Each answer with the certainty that the other reports grant its rule, never more than it claims."""
    count, grade = tally(found), tally([a._replace(rule=a.certainty) for a in found])
    out = []
    for a in found:
        right, n = (x - y for x, y in zip(count[a.rule], (a.right, 1)))
        all_right, all_n = (x - y for x, y in zip(grade[a.certainty], (a.right, 1)))
        got = earned(estimate(right, n, all_right, all_n), n)
        out.append(a._replace(certainty=max(got, a.certainty, key=GRADES.index)))
    return out


def unearned(found, known):
    """Rules that claim more than the reports grant them: (rule, claims, right, n)."""
    count, grade = tally(found), tally([a._replace(rule=a.certainty) for a in found])
    for rule, claims in sorted(known.items()):
        right, n = count.get(rule, (0, 0))
        if claims not in NEEDED or not n:
            continue
        if right < n and estimate(right, n, *grade[claims]) < NEEDED[claims]:
            yield rule, claims, right, n


def withheld(build, all_):
    """For each report, what no other source uses, a piece a line."""
    cases = reports.read(check.CASES) if os.path.exists(check.CASES) else []
    used = [set(line.split("\t")) - {""} for line in check.explain_many(build, [reports.parts(r) for r in all_ + cases], "--used")]
    sources = collections.defaultdict(set)
    for report, pieces in zip(all_ + cases, used):
        for piece in pieces:
            sources[piece].add(report.get("source", report["id"]))
    return ["\n".join(sorted(piece for piece in pieces if len(sources[piece]) == 1)) for _, pieces in zip(all_, used)]


def write_words(words, folder, name):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        for cause, row in words.rows():
            f.write(" ".join([cause] + ["%s %d" % pair for pair in row.items()]) + "\n")
    return path


def unseen_alarms(build, texts, words):
    """Clean logs that get a cause."""
    lines = check.explain_many(build, [[("log.txt", text)] for _, text in texts], "--json", "--words", words)
    return [name + " " + check.candidates(answer) for (name, _), answer in zip(texts, map(json.loads, lines)) if answer["cause"] != "none"]


def unseen(build, show):
    all_, scores = reports.read_all(), collections.defaultdict(check.Score)
    texts = [[("without", without)] + reports.parts(r) for r, without in zip(all_, withheld(build, all_))]
    clean = [("clean/" + name, text) for name, _, text in check.own_texts(os.path.join(ROOT, "tests", "text", "clean"))]
    wrong, alarms = [], []
    with tempfile.TemporaryDirectory() as folder:
        for part, words in learn_words.learn_folds().items():
            mine = [i for i, r in enumerate(all_) if part == (learn_words.fold(r["id"]) if reports.half(r) == "tuned" else None)]
            path = write_words(words, folder, str(part))
            lines = check.explain_many(build, [texts[i] for i in mine], "--json", "--without", "--words", path)
            for i, answer in zip(mine, map(json.loads, lines)):
                half = reports.half(all_[i])
                if not scores[half].add(all_[i], answer) and half == "tuned":
                    wrong.append("  %-10s %-30s %s" % (all_[i]["id"], "|".join(reports.accepted(all_[i])), check.candidates(answer)))
            alarms += unseen_alarms(build, [text for text in clean if learn_words.fold(text[0]) == part], path)
    for half in reports.HALVES:
        scores[half].print(half + ", as if unseen")
    print("text: clean logs, as if unseen: %d alarms in %d%s" % (len(alarms), len(clean), "".join("\n  " + one for one in alarms)))
    if show:
        print("\n".join(sorted(wrong)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", nargs="?", default="build")
    p.add_argument("--rules", action="store_true", help="also list every rule that a report showed")
    p.add_argument("--unseen", action="store_true", help="how reports fare that nobody has seen, estimated")
    p.add_argument("--show", action="store_true", help="with --unseen: the tuned reports that are wrong")
    o = p.parse_args()
    if o.unseen:
        return unseen(o.build, o.show)
    found, held = (answers(o.build, labeled(half)) for half in reports.HALVES)
    mine = answers(o.build, own())
    known = check_rules.rules()
    table("reports, as said", found)
    table("reports, leave-one-out", leave_one_out(found))
    if held:
        table("held-out reports, as said", held)
        granted, grade = tally(found), tally([a._replace(rule=a.certainty) for a in found])
        table("held-out, as the others grant", [a._replace(certainty=max(
            earned(estimate(*granted.get(a.rule, (0, 0)), *grade[a.certainty]), granted.get(a.rule, (0, 0))[1]),
            a.certainty, key=GRADES.index)) for a in held])
    table("our own texts, as said", mine)
    for rule, claims, right, n in unearned(found, known):
        print("not earned: %-8s %-60s right in %d of %d" % (claims, rule, right, n))
    seen = tally(found)
    alone = [r for r, claims in known.items() if claims == "certain" and r not in seen and r in tally(mine)]
    for rule in alone:
        print("certain, decided no report, only our own texts: %s" % rule)
    if o.rules:
        for rule, (right, n) in sorted(seen.items()):
            print("%-70s %-8s %d of %d" % (rule, known.get(rule, ""), right, n))


if __name__ == "__main__":
    main()
