# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the advice in cuwhy's answer: something is repeated, there is none, or a guess destroys something."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(ROOT, "kb", "destructive.def"), encoding="utf-8") as f:
    DESTROYS = [re.compile(r"(?<![^\s;&|()`'\"])" + re.escape(found.rstrip("*")) + ("" if found.endswith("*") else r"(?![^\s;&|()`'\"])"))
                for found in re.findall(r'^DESTROYS\("([^"]*)"\)', f.read(), re.M)]


def steps(command):
    """The parts of a command line between newlines, `;` and `&&`, without splitting quoted texts."""
    parts, quote, begin, i = [], "", 0, 0
    while i < len(command):
        char = command[i]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in ";\n" or command.startswith("&&", i):
            parts.append(command[begin:i])
            i += command.startswith("&&", i)
            begin = i + 1
        i += 1
    return parts + [command[begin:]]


def words(command):
    """The words of one command, sorted: options in another order, other spaces and comments are the same command."""
    return tuple(sorted(re.sub(r"\s#.*", "", command).split()))


def sentence(text):
    return re.sub(r"\W+", " ", text).strip().lower()


def texts_twice(texts):
    """A sentence that appears twice, or that another one begins with."""
    said = [sentence(text) + " " for text in texts]
    return ["it says twice: %s" % texts[i] for i, one in enumerate(said) for k, other in enumerate(said)
            if i != k and len(one.split()) > 3 and other.startswith(one) and (one != other or i > k)]


def commands_twice(commands):
    """A command that equals another one, in any order and spacing, or is part of it."""
    found = []
    for i, one in enumerate(commands):
        for k, other in enumerate(commands):
            if i < k and words(one) == words(other):
                found.append("two fixes have one command: %s" % other)
            elif i != k and words(one) != words(other) and words(one) in [words(step) for step in steps(other)]:
                found.append("'%s' is a part of '%s'" % (one, other))
    return found


HOLE = re.compile(r"^\s|\s$|  |(?<!\w)\( *\)|: *[;,]")
QUOTED = re.compile(r"`[^`]+`|.* line \d+: .*|process \d+, .*")   # what the program, its text or another process's command line says


def holes(answer):
    """Sentences in which a value is missing: "the status is ", "of  bytes", "by ()"."""
    said = [answer["title"], answer.get("because") or ""] + answer.get("why", []) + [item["text"] for item in answer.get("fix", [])]
    said += [candidate.get("because") or "" for candidate in answer.get("candidates", [])]
    return ["it has a hole: '%s'" % text for text in said if HOLE.search(QUOTED.sub("x", text))]


def flaws(answer):
    """Complaints about one answer of --json; empty when there are none."""
    if answer.get("cause", "none") in ("none", "unknown"):
        return []
    why, fix = answer.get("why", []), answer.get("fix", [])
    found = texts_twice([answer["title"]] + why) + texts_twice([item["text"] for item in fix])
    found += commands_twice([item["command"] for item in fix if item.get("command")])
    if answer["certainty"] != "certain":
        found += ["a guess advises: %s" % item["command"] for item in fix
                  if item.get("command") and any(words.search(item["command"]) for words in DESTROYS)]
    found += holes(answer)
    if not fix:
        found.append("it has no advice")
    elif fix[0]["text"].startswith(("or ", "and ")):
        found.append("its first advice begins with: %s" % fix[0]["text"])
    return found
