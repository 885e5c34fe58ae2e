#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which words tell the causes apart: writes kb/words.def from texts whose cause is known, or scores it.

    tools/learn_words.py > kb/words.def
    tools/learn_words.py --score

Learned from: our own texts (tests/text/own), the tuned half of the reports, and the pages of the causes. The kept half is never
learned from: --score prints how often the words alone find the cause there, and in the tuned half with each report left out of what
is learned.

A text is the set of its words; a word weighs as much as it is rare (the logarithm of how many texts have it), twice that in a line that
says what failed, and each text as much as any other. A cause is the sum of its texts. How alike a text is to a cause is the cosine of the angle between them; what all
causes have in common in that (the length of the text) is left out, so that one number a word and cause remains, to be added up."""
import argparse
import collections
import math
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "text"))
import check  # noqa: E402
import reports  # noqa: E402

KEPT_WORDS = 300     # of a cause; with half as many, two texts in a hundred fewer are found
FAILING_TIMES = 2    # that a word of a line that says what failed counts; with 1 or 3, one text in a hundred fewer is found
SEEN_IN = 2          # texts: a word of one text alone says nothing
COMMON = 0.15       # of the texts: a word of more of them says nothing, either ("the", "error"); between 0.1 and 1 nothing else changes
SHORTEST, LONGEST = 2, 24
SCALE = 100


def failing_words():
    with open(os.path.join(ROOT, "kb", "text_marks.def"), encoding="utf-8") as f:
        return re.findall(r'^MARK_FAILING\("(.*)"\)$', f.read(), re.M)


FAILING = failing_words()


def words_of(text):
    """How often each word counts, as src/input/text/likeness.c does it."""
    found = {}
    for line in text.lower().split("\n"):
        times = FAILING_TIMES if any(word in line for word in FAILING) else 1
        for word in (run.lstrip("0123456789_").rstrip("_") for run in re.findall(r"[a-z0-9_]+", line)):
            if SHORTEST <= len(word) <= LONGEST:
                found[word] = max(times, found.get(word, 0))
    return found


def labeled_texts():
    for report in reports.read_all():
        yield report["id"], reports.accepted(report), words_of(report["text"] + "\n" + report["env"]), reports.half(report) == "tuned"
    for folder in ("own", "clean"):
        for _, causes, text in check.own_texts(os.path.join(ROOT, "tests", "text", folder)):
            yield None, causes, words_of(text), True


def labeled():
    """(id, causes, words, learned) of each text; our own ones and pages have no id. The page of a cause that no text has (a process that is looked
    at while it runs) says nothing about texts."""
    texts = list(labeled_texts())
    told = {causes[0] for _, causes, _, learned in texts if learned}
    for cause in sorted(told - {"none"}):
        with open(os.path.join(ROOT, "kb", "causes", cause + ".md"), encoding="utf-8") as f:
            texts.append((None, [cause], words_of(f.read().split("\n---\n", 2)[-1]), True))     # without its rules
    return texts


class Words:
    """What each word weighs for each cause."""

    def __init__(self, texts):
        seen = collections.Counter(word for _, words in texts for word in words)
        self.rare = {word: math.log((len(texts) + 1) / (n + 0.5)) for word, n in seen.items()
                     if SEEN_IN <= n <= COMMON * len(texts)}
        self.sums = collections.defaultdict(collections.Counter)
        for cause, words in texts:
            self.add(self.sums[cause], words, 1)
        self.table = {cause: self.row(sums) for cause, sums in self.sums.items() if cause != "none"}

    def add(self, sums, words, sign):
        length = math.sqrt(sum((times * self.rare.get(word, 0)) ** 2 for word, times in words.items())) or 1
        for word, times in words.items():
            if word in self.rare:
                sums[word] += sign * times * self.rare[word] / length

    def row(self, sums):
        length = math.sqrt(sum(n * n for n in sums.values())) or 1
        weights = {word: round(SCALE * self.rare[word] * n / length) for word, n in sums.items()}
        best = sorted(weights.items(), key=lambda row: (-row[1], row[0]))[:KEPT_WORDS]
        return {word: weight for word, weight in best if weight > 0}

    def rank(self, words, without=None):
        """The causes, the most alike first. `without`: the cause that these words were learned for is learned without them."""
        table = self.table
        if without in table:
            sums = collections.Counter(self.sums[without])
            self.add(sums, words, -1)
            table = dict(table, **{without: self.row(sums)})
        return sorted(table, key=lambda cause: (-sum(times * table[cause].get(word, 0) for word, times in words.items()), cause))


def score(words, texts):
    halves = collections.defaultdict(collections.Counter)
    for name, causes, text, learned in texts:
        if not name or causes[0] == "none":
            continue
        found = words.rank(text, causes[0] if learned else None)
        half = halves["tuned half, each left out" if learned else "kept half"]
        half["n"] += 1
        half["first"] += found[0] in causes
        half["three"] += any(cause in causes for cause in found[:3])
    for half, n in sorted(halves.items()):
        print("words alone, %s: first %d of %d, %.1f %%; among three %d, %.1f %%"
              % (half, n["first"], n["n"], 100.0 * n["first"] / n["n"], n["three"], 100.0 * n["three"] / n["n"]))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--score", action="store_true", help="how often the words alone find the cause")
    o = p.parse_args()
    texts = list(labeled())
    words = Words([(causes[0], text) for _, causes, text, learned in texts if learned])
    if o.score:
        return score(words, texts)
    print("""/* SPDX-License-Identifier: Apache-2.0
 * Words that texts about a cause have more often than others, with their weights (tools/learn_words.py writes this file).
 *
 *   WORDS("cause", "word weight word weight ...")
 */
#ifdef WORDS""")
    for cause, row in sorted(words.table.items()):
        print('WORDS("%s", "%s")' % (cause, " ".join("%s %d" % pair for pair in row.items())))
    print("#undef WORDS\n#endif")


if __name__ == "__main__":
    main()
