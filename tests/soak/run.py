# SPDX-License-Identifier: Apache-2.0
"""Random programs on the simulated GPU, with and without cuwhy, for as long as you like: make soak SECONDS=3600 SEED=1.

Status, stdout and stderr must be those of the plain program, every recording must open, and nothing of cuwhy may be left.
    run.py --one SEED       repeats one program and prints it
    run.py --self-test      plants defects, which must be found
"""
import argparse
import collections
import multiprocessing
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import grammar
import guest
from place import Place

RINGS_EVERY = 300       # programs; one of them takes seconds
PLANTS = ("output", "status", "folder", "process", "recording")


class Worker:
    """In each process of the pool."""
    place = scratch = None

    @classmethod
    def start(cls, place, scratch):
        cls.place, cls.scratch = place, scratch
        guest.become_subreaper()


def rings(seed):
    what = ("thread", "address,undefined")[seed // RINGS_EVERY % 2]
    done = subprocess.run([Worker.place.rings[what]], capture_output=True, text=True, timeout=600)
    wrong = ["rings under %s: status %d: %s" % (what, done.returncode, done.stderr[-2000:])] if done.returncode else []
    return {"seed": seed, "kind": "tables under sanitizers", "wrong": wrong, "opened": 0, "verdicts": []}


def one(seed):
    if seed % RINGS_EVERY == 0:
        return rings(seed)
    program = grammar.Program(seed)
    host = guest.Guest(Worker.place, program, Worker.scratch)
    try:
        host.soak()
    except Exception as error:  # a broken harness is a failure of its own, with the seed that shows it
        host.bad("harness: %s: %s" % (type(error).__name__, error))
    host.release()
    kind = "killed" if program.kill else "meddled with" if program.supervisor_dies or "signal-keeper" in program.words else "compared"
    return {"seed": seed, "kind": "%s, %s" % (kind, program.build), "wrong": host.wrong, "opened": host.opened, "verdicts": host.verdicts}


class Progress:
    """One line every few seconds on a terminal, every minute otherwise."""

    def __init__(self, what):
        self.what = what
        self.began = self.said = time.monotonic()
        self.every = 3 if sys.stderr.isatty() else 60

    def say(self, done, wrong):
        now = time.monotonic()
        if now - self.said >= self.every:
            self.said = now
            print("%s: %d s, %d programs, %d wrong" % (self.what, now - self.began, done, wrong), file=sys.stderr, flush=True)


def seeds(first, until):
    seed = first
    while time.monotonic() < until:
        yield seed
        seed += 1


def soak(place, scratch, args):
    print("soak: seed %d, %d s, %d at a time" % (args.seed, args.seconds, args.jobs), flush=True)
    programs, causes, wrong, opened, progress = collections.Counter(), collections.Counter(), [], 0, Progress("soak")
    until = time.monotonic() + args.seconds
    gate = multiprocessing.BoundedSemaphore(2 * args.jobs)   # imap would draw all seeds at once

    def gated():
        for seed in seeds(args.seed, until):
            gate.acquire()
            yield seed

    with multiprocessing.Pool(args.jobs, Worker.start, (place, scratch)) as pool:
        for result in pool.imap_unordered(one, gated()):
            gate.release()
            programs[result["kind"]] += 1
            causes.update(result["verdicts"])
            opened += result["opened"]
            for text in result["wrong"]:
                wrong.append(result["seed"])
                print("not ok - seed %d: %s\n    repeat: %s %s --build %s --one %d" % (
                    result["seed"], text, sys.executable, os.path.relpath(__file__), args.build, result["seed"]), flush=True)
            progress.say(sum(programs.values()), len(wrong))
    for kind, number in sorted(programs.items()):
        print("%8d  %s" % (number, kind))
    print("%8d  recordings opened: %s" % (opened, ", ".join("%s %d" % c for c in causes.most_common())))
    print("soak: seed %d, %d programs in %d s, %d wrong" % (
        args.seed, sum(programs.values()), time.monotonic() - progress.began, len(wrong)))
    return bool(wrong)


def repeat(place, scratch, seed):
    Worker.start(place, scratch)
    if seed % RINGS_EVERY:
        program = grammar.Program(seed)
        host = guest.Guest(place, program, scratch)
        print("%s\n%s" % (vars(program), " ".join(map(shlex.quote, host.command()))))
    result = one(seed)
    print("\n".join(result["wrong"]) or "ok")
    return bool(result["wrong"])


def self_test(place, scratch):
    """A defect in what is compared or left is found; without one, nothing is."""
    Worker.start(place, scratch)
    program = grammar.Program(1, kill="")
    program.words, program.options, program.files, program.closed = ["cuda", "launch", "3", "state", "exit", "0"], [], 0, []
    program.ends, program.supervisor_dies, program.out, program.small = "well", False, False, False
    failed = 0
    for plant in ("",) + PLANTS:
        host = guest.Guest(place, program, scratch, plant)
        host.soak()
        host.release()
        if bool(host.wrong) != bool(plant):
            failed += 1
            print("not ok - planted %s, found %s" % (plant or "nothing", host.wrong))
    print("soak: self test, %d passed, %d failed" % (len(PLANTS) + 1 - failed, failed))
    return bool(failed)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--seconds", type=int, default=3600)
    ap.add_argument("--seed", type=int, default=0, help="0: a new one, which is printed")
    ap.add_argument("-j", dest="jobs", type=int, default=2 * os.cpu_count())
    ap.add_argument("--one", type=int)
    ap.add_argument("--self-test", action="store_true")
    args = ap.parse_args()
    args.seed = args.seed or random.SystemRandom().randrange(1, 10 ** 9)
    scratch = tempfile.mkdtemp(prefix="cuwhy-soak-")
    try:
        place = Place(os.path.abspath(args.build), scratch, sanitizers=not args.self_test)
        if args.self_test:
            return self_test(place, scratch)
        return repeat(place, scratch, args.one) if args.one is not None else soak(place, scratch, args)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
