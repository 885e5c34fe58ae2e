#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs by strangers, each in several variants whose true cause is the same: is it named, and is the answer the same?

    tests/torch/variants.py [--build build] [-j N] [--first N] [--after N] [--keep DIR] [--json FILE] [--folder FOLDER] [name…]
    tests/torch/variants.py --real [--count 20] [--seed 0] [-j N] [name…]       one variant each of some of them, on this machine's GPU
    tests/torch/variants.py --rehearse [--count 20] [--seed 0] [-j N] [name…]   the same without a GPU

FOLDER/variants.json: [{"file": …, "label": cause without oom-, "here_line": N, "also_lines": [N…], "variants": [{"args": […], "card": GiB}…]}…]. Each
variant runs on a simulated card of that size. --first: only that many variants of each; --after: without that many of them. --keep: recordings stay in DIR, and
what is there already is judged again, not run. Status 1: a wrong answer was certain.

--real: the GPU is as small as the variant's card for the program (smaller_card.py), and the programs have it in turns. The seed chooses programs,
as many of each label as can be, and variants.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import smaller_card  # noqa: E402

LIMIT = 300


def again(args, out):
    words = [os.path.join(args.build, "cuwhy"), "explain", "--json", out]
    return json.loads(subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False).stdout)


def verdict(args, folder, program, number, variant):
    """Its cause, certainty, lines and text; None: the program did not run out of memory."""
    out = os.path.join(folder, "%s-%d" % (program.removesuffix(".py"), number))
    command = [sys.executable, os.path.abspath(os.path.join(args.folder, program)), *variant["args"]]
    try:
        if os.path.exists(os.path.join(out, "verdict.json")):
            return again(args, out)
        if args.card:
            args.card.run(int(variant["card"] * smaller_card.GIB), command, ["--no-core-dump", "--out", out, "-f"], LIMIT * args.jobs)
        else:
            words = [os.path.join(args.build, "cuwhy"), "run", "--gpu", "sim:h200,memory=%gG" % variant["card"], "--out", out, "-f", "--", *command]
            subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
            return json.load(stream)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return {"cause": "no verdict", "certainty": "none"}


def chosen(rows, count, seed):
    """Programs of each label in turn, each with one of its variants."""
    dice, by_label, some = random.Random(seed), {}, []
    for row in dice.sample(rows, len(rows)):
        by_label.setdefault(row["label"], []).append(row)
    while len(some) < min(count, len(rows)):
        for label in sorted(by_label):
            if by_label[label] and len(some) < count:
                row = by_label[label].pop()
                some.append(dict(row, variants=[dice.choice(row["variants"])]))
    return some


def lines_of(v):
    return {p["line"] for p in (v.get("where"), v.get("asked")) if p and p.get("line")}


def judge(args, folder, row):
    """[(cause, certainty, line is right)] of its variants."""
    wanted, said = {row["here_line"], *row.get("also_lines", ())}, []
    for number, variant in list(enumerate(row["variants"], 1))[args.after:args.first]:
        v = verdict(args, folder, row["file"], number, variant)
        said.append((v["cause"].removeprefix("oom-"), v.get("certainty"), bool(lines_of(v) & wanted), sorted(lines_of(v))))
    return row, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("--first", type=int, default=99)
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--keep")
    parser.add_argument("--json")
    parser.add_argument("--folder", default=os.path.join(HERE, "variants"))
    parser.add_argument("--count", type=int, default=20, help="with --real: programs")
    parser.add_argument("--seed", type=int, default=0, help="with --real: of the choice")
    smaller_card.add_arguments(parser)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.card = None
    if not smaller_card.set_torch(args):
        return 0
    with open(os.path.join(args.folder, "variants.json"), encoding="utf-8") as stream:
        rows = [r for r in json.load(stream) if not args.names or any(n in r["file"] for n in args.names)]
    right = runs = line = same = certain_wrong = likely = likely_wrong = 0
    table, kept = collections.Counter(), []
    if args.real or args.rehearse:
        rows = chosen(rows, args.count, args.seed)
    with tempfile.TemporaryDirectory(prefix="cuwhy-variants-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        if args.real or args.rehearse:
            args.card = smaller_card.Card(args.build, args.rehearse, folder)
        for row, said in pool.map(lambda r: judge(args, args.keep or folder, r), rows):
            good = [cause == row["label"] for cause, *_ in said]
            bad = [s for s in said if s[0] != row["label"] and s[1] == "certain"]
            runs, right, certain_wrong = runs + len(said), right + sum(good), certain_wrong + len(bad)
            likely += sum(s[1] == "likely" for s in said)
            likely_wrong += sum(s[1] == "likely" and s[0] != row["label"] for s in said)
            line, same = line + sum(s[2] for s in said), same + (len({s[0] for s in said}) == 1)
            table.update((row["label"], s[0], s[1]) for s in said)
            kept.append({"file": row["file"], "label": row["label"], "said": said})
            print("%s %-24s %-22s %s" % ("ok    " if all(good) else "CERTAIN" if bad else "not ok", row["file"], row["label"], "; ".join(
                "%s %s%s %s" % (c, s, "" if l else " (other line)", w) for c, s, l, w in sorted(set(map(lambda t: (t[0], t[1], t[2], str(t[3])), said))))), flush=True)
    for key, n in sorted(table.items()):
        print("%-24s -> %-28s %-9s %d" % (*map(str, key), n))
    print("cause right %d of %d, line %d, certain wrong %d, likely wrong %d of %d; the same cause in all variants: %d of %d programs" % (
        right, runs, line, certain_wrong, likely_wrong, likely, same, len(rows)))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as stream:
            json.dump(kept, stream, indent=1)
    return 1 if certain_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
