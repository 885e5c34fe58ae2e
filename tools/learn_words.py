#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which words tell the causes apart: writes kb/words.def from texts whose cause is known, or scores it.

    tools/learn_words.py > kb/words.def
    tools/learn_words.py --score

Learned from: our own texts (tests/text/own), the tuned half of the reports, and the pages of the causes. The kept half is never
learned from: --score prints how often the words alone find the cause there, and in the tuned half with each report left out of what
is learned.

A text is the set of its words, and of pairs of neighbors in lines that say what failed. A word weighs as much as it is rare (the
logarithm of how many texts have it), twice that in a line that says what failed, and each text as much as any other. What a word says
for or against each cause is learned by softmax regression: it starts from the mean of each cause's texts, then each text moves the
weights of its words toward its cause, and away from others by as much as they were believed. Every text is seen a few times, in an
order that is always the same. What all causes have in common (the length of the text) is left out, so that one number a word and
cause remains, to be added up."""
import argparse
import collections
import hashlib
import math
import multiprocessing
import os
import random
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "text"))
import check  # noqa: E402
import reports  # noqa: E402

KEPT_WORDS = 600     # of a cause; with half as many, two texts in a hundred fewer are found, with all of them one more
FAILING_TIMES = 2    # that a word of a line that says what failed counts; with 1 or 3, one text in a hundred fewer is found
SEEN_IN = 2          # texts: a word of one text alone says nothing
COMMON = 0.15       # of the texts: a word of more of them says nothing, either ("the", "error"); between 0.1 and 1 nothing else changes
SHORTEST, LONGEST = 2, 24
SCALE = 10           # of what is written
PASSES = 4           # over all texts; with 2 it is the same, with 8 one text in a hundred fewer is found
STEP = 1.0           # of the first pass; with 0.5 or 2 it is the same
START = 8.0          # how much the means are believed at first; with 4 one text in a hundred fewer is found, with 12 it is the same
FOLDS = 5
TOO_SMALL = 0.005    # a part of a step: what is believed less is not worth the time


def failing_words():
    with open(os.path.join(ROOT, "kb", "log_failures.def"), encoding="utf-8") as f:
        return re.findall(r'^SAID\(failing, "(.*)"\)$', f.read(), re.M)


FAILING = failing_words()


def words_of(text):
    """How often each word counts, as src/find/words/likeness.c does it."""
    found = {}
    for line in text.lower().split("\n"):
        times = FAILING_TIMES if any(word in line for word in FAILING) else 1
        words = [run.lstrip("0123456789_").rstrip("_") for run in re.findall(r"[a-z0-9_]+", line)]
        words = [word for word in words if SHORTEST <= len(word) <= LONGEST]
        for word in words:
            found[word] = max(times, found.get(word, 0))
        for pair in zip(words, words[1:]) if times > 1 else ():
            found["+".join(pair)] = times
    return found


def labeled_texts():
    for report in reports.read_all():
        yield report["id"], reports.accepted(report), words_of(report["text"] + "\n" + report["env"]), reports.half(report) == "tuned"
    for folder in ("own", "clean"):
        for name, causes, text in check.own_texts(os.path.join(ROOT, "tests", "text", folder)):
            yield "clean/" + name if folder == "clean" else None, causes, words_of(text), True


def labeled():
    """(id, causes, words, learned) of each text; our own ones and pages have no id: they are never left out. The page of a cause that no text has
    (a process that is looked at while it runs) says nothing about texts."""
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
        self.causes = sorted({cause for cause, _ in texts})
        self.weight = {word: [0.0] * len(self.causes) for word in self.rare}
        texts = [(self.causes.index(cause), self.parts(words)) for cause, words in texts]
        self.start(texts)
        order = random.Random(1)
        for turn in range(PASSES):
            order.shuffle(texts)
            for cause, parts in texts:
                self.learn(cause, parts, STEP / (1 + turn / 10))
        self.table = {cause: self.row(i) for i, cause in enumerate(self.causes)}

    def parts(self, words):
        """(word, its part of the text), of length 1 together."""
        parts = [(word, times * self.rare[word]) for word, times in words.items() if word in self.rare]
        length = math.sqrt(sum(part * part for _, part in parts)) or 1
        return [(word, part / length) for word, part in parts]

    def start(self, texts):
        sums = [collections.Counter() for _ in self.causes]
        for cause, parts in texts:
            for word, part in parts:
                sums[cause][word] += part
        for cause, words in enumerate(sums):
            length = math.sqrt(sum(n * n for n in words.values())) or 1
            for word, n in words.items():
                self.weight[word][cause] = START * n / length

    def learn(self, cause, parts, step):
        sums = [0.0] * len(self.causes)
        for word, part in parts:
            sums = [a + part * b for a, b in zip(sums, self.weight[word])]
        most = max(sums)
        believed = [math.exp(a - most) for a in sums]
        total = sum(believed)
        moves = [-step * one / total for one in believed]
        moves[cause] += step
        moves = [(i, move) for i, move in enumerate(moves) if abs(move) > TOO_SMALL * step]
        for word, part in parts:
            row = self.weight[word]
            for i, move in moves:
                row[i] += move * part

    def row(self, cause):
        weights = {word: round(SCALE * self.rare[word] * row[cause]) for word, row in self.weight.items()}
        most = sorted(weights.items(), key=lambda row: (-abs(row[1]), row[0]))[:KEPT_WORDS]
        return {word: weight for word, weight in sorted(most, key=lambda row: (-row[1], row[0])) if weight}

    def rows(self):
        """(cause, its words); first how rare they are, as the row of cause ""."""
        used = {word for row in self.table.values() for word in row}
        yield "", {word: round(SCALE * self.rare[word]) for word in sorted(used)}
        yield from sorted(self.table.items())

    def rank(self, words):
        """The causes, the most alike first."""
        return sorted(self.table.keys() - {"none"}, key=lambda cause: (-sum(times * self.table[cause].get(word, 0) for word, times in words.items()), cause))


def fold(name):
    """Which of FOLDS parts of the reports it is in."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) // 2 % FOLDS      # its last bit is the half


def learn_without(part):
    """Learned from all texts that may be learned from but one part of the reports. (None: from all.)"""
    return Words([(causes[0], text) for name, causes, text, learned in labeled() if learned and (part is None or not name or fold(name) != part)])


def learn_folds():
    """The words learned without each part, and those of all."""
    with multiprocessing.Pool() as pool:
        return dict(zip([*range(FOLDS), None], pool.map(learn_without, [*range(FOLDS), None], 1)))


def score():
    folds, halves = learn_folds(), collections.defaultdict(collections.Counter)
    for name, causes, text, learned in labeled():
        if not name or causes[0] == "none":
            continue
        found = folds[fold(name) if learned else None].rank(text)
        half = halves["tuned half, its part left out" if learned else "kept half"]
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
    if o.score:
        return score()
    words = learn_without(None)
    print("""/* SPDX-License-Identifier: Apache-2.0
 * Words that texts about a cause have more often than others, with their weights (tools/learn_words.py writes this file).
 *
 *   WORDS("cause", "word weight word weight ...")     one+two: neighbors in a line that says what failed; below 0: against it
 *   WORDS("", "word rareness ...")                    first: what the length of a text is measured by
 */
#ifdef WORDS""")
    for cause, row in words.rows():
        print('WORDS("%s", "%s")' % (cause, " ".join("%s %d" % pair for pair in row.items())))
    print("#undef WORDS\n#endif")


if __name__ == "__main__":
    main()
