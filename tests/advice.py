# SPDX-License-Identifier: Apache-2.0
"""What an answer of cuwhy says twice: a sentence, a command, or a command that is another one in other order or spacing."""
import re


def steps(command):
    """The parts of a command line between newlines, `;` and `&&`, texts in quotes left whole."""
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


def repeated(answer):
    """Sentences about what is said twice in one answer of --json; empty when all is well."""
    said, found = {}, []
    texts = [answer.get("title", "")] + [item if isinstance(item, str) else item["text"] for item in answer.get("why", []) + answer.get("fix", [])]
    for text in texts:
        if sentence(text) in said:
            found.append("it says twice: %s" % text)
        said[sentence(text)] = True
    commands = [item["command"] for item in answer.get("fix", []) if item.get("command")]
    for i, one in enumerate(commands):
        for k, other in enumerate(commands):
            if i < k and words(one) == words(other):
                found.append("two fixes have one command: %s" % other)
            elif i != k and words(one) != words(other) and words(one) in [words(step) for step in steps(other)]:
                found.append("'%s' is a part of '%s'" % (one, other))
    return found
