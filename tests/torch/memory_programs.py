# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs that run out of memory, made from a seed, each with the verdict that it deserves.

    tests/torch/memory_programs.py SEED [--gib 12] [--out FOLDER]      shows one program and its label

A program is a task (memory_tasks.py: model and data), a mistake (memory_mistakes.py) and its clothes (memory_clothes.py: how the loop is
written, and where things are). Labels are true by construction. Beside each program is its near miss: the same one without the mistake,
but too large (oom-capacity), or small enough (no verdict). Seeds 3n, 3n+1 and 3n+2 are these three of one program.

Whoever changes a rule of cuwhy may read these files; whoever adds programs here must not look at the rules first.
"""
import argparse
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import memory_clothes  # noqa: E402
import memory_mistakes  # noqa: E402

MARK = re.compile(r"\s*#@(\w+)")
VARIANTS = ("mistake", "large", "small")


class Label:
    """What is true of a program.

    causes: the verdicts that are right; empty: the program ends well. certain: those of them that may be called certain.
    lines: the acceptable lines as "file:line". asked: the line that asked for the memory is acceptable as well, and if that
    was in backward, so are `forward`, the lines that made the graph.
    """

    def __init__(self, causes, certain=None, lines=(), asked=False, forward=()):
        self.causes, self.certain = list(causes), list(causes if certain is None else certain)
        self.lines, self.asked, self.forward = sorted(lines), asked, sorted(forward)


class Program:
    def __init__(self, name, files, label, arguments=()):
        self.name, self.files, self.label = name, files, label
        self.main = next(iter(files))       # the file to run
        self.arguments = list(arguments)
        self.gpu = None             # another card than the one that is asked for
        self.story = ""             # programs with the same one deserve the same answer


def marked(files):
    """The files without their marks, and the lines of each mark."""
    clean, lines = {}, {}
    for name, text in files.items():
        out = []
        for number, line in enumerate(text.splitlines(), 1):
            for mark in MARK.findall(line):
                lines.setdefault(mark, set()).add("%s:%d" % (name, number))
            out.append(MARK.sub("", line).rstrip())
        clean[name] = "\n".join(out).rstrip() + "\n"
    return clean, lines


def generate(seed, memory, only=None):
    """The program of this seed for a card with so many bytes. only: the name of a mistake."""
    variant = VARIANTS[seed % 3]
    plan = memory_mistakes.plan(random.Random(seed // 3), variant, memory, only)
    files = memory_clothes.dress(plan, random.Random("clothes %d" % (seed // 3)))
    clean, lines = marked(files)
    of = lambda names: {line for name in names for line in lines.get(name, ())}     # noqa: E731
    label = Label(plan.causes, plan.certain, of(plan.blame), plan.asked, of(("forward", "loss", "inner", "result", "model")))
    return Program("%d-%s-%s-%s-%s" % (seed, plan.task.name, plan.mistake, plan.style, variant), clean, label)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("--gib", type=float, default=11.76, help="memory of the card")
    parser.add_argument("--out", help="write the files into this folder")
    parser.add_argument("--only", help="this mistake")
    args = parser.parse_args()
    program = generate(args.seed, int(args.gib * (1 << 30)), args.only)
    for name, text in program.files.items():
        if args.out:
            os.makedirs(args.out, exist_ok=True)
            with open(os.path.join(args.out, name), "w", encoding="utf-8") as file:
                file.write(text)
        else:
            print("# ---- %s\n%s" % (name, text))
    print(program.name, vars(program.label), file=sys.stderr)


if __name__ == "__main__":
    main()
