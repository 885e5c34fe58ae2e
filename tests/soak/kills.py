# SPDX-License-Identifier: Apache-2.0
"""Kills short programs at any moment of their lives, and every recording must open: make check-kills KILLS=10000.

The moment is uniformly random between the start of cuwhy and a tenth beyond its usual end; killed is the program, the keeper, the
supervisor, or all of them.
"""
import argparse
import collections
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile

import grammar
import guest
from place import Place
from run import Progress, Worker

SENTENCES = (
    "cuda threads 3 { launch 300 oom 2 alloc 256 } sync exit 0",
    "cuda launch 2000 bad-launch 2 die-oom",
    "cuda spawn { cuda launch 300 oom 1 exit 2 } fork { launch 1 } exit 1",
)


def make(seed, kill):
    program = grammar.Program(seed, kill)
    program.words = program.dice.choice(SENTENCES).split()
    program.options, program.out, program.small, program.files, program.closed = ["--no-core-dump"], True, False, 0, []
    return program


def usual_seconds(place, scratch):
    """How long a run takes if nobody kills it, here and now."""
    took = []
    for seed in range(5):
        host = guest.Guest(place, make(seed, ""), scratch)
        took.append(host.under().seconds)
        host.release()
    return statistics.median(took)


def one(job):
    seed, seconds = job
    host = guest.Guest(Worker.place, make(seed, grammar.KILLS[seed % len(grammar.KILLS)]), Worker.scratch)
    parts = 0
    try:
        run = host.under(host.killer(seconds))
        for folder in host.recordings():
            parts += sum(name.endswith(".cwr") for name in os.listdir(folder))
            host.explain(folder)
        if run.left:
            host.bad("processes left: " + ", ".join(run.left))
    except Exception as error:
        host.bad("harness: %s: %s" % (type(error).__name__, error))
    host.release()
    return {"seed": seed, "target": host.program.kill, "wrong": host.wrong, "opened": host.opened, "parts": parts, "verdicts": host.verdicts}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--kills", type=int, default=10000)
    ap.add_argument("--seed", type=int, default=0, help="0: a new one, which is printed")
    ap.add_argument("-j", dest="jobs", type=int, default=2 * os.cpu_count())
    args = ap.parse_args()
    seed = args.seed or random.SystemRandom().randrange(1, 10 ** 9)
    scratch = tempfile.mkdtemp(prefix="cuwhy-kills-")
    targets, causes, sums, wrong, progress = collections.Counter(), collections.Counter(), collections.Counter(), 0, Progress("kills")
    try:
        place = Place(os.path.abspath(args.build), scratch, sanitizers=False)
        guest.become_subreaper()
        seconds = usual_seconds(place, scratch) * args.jobs / os.cpu_count()
        print("kills: seed %d, %d kills within %.2f s each, %d at a time" % (seed, args.kills, seconds, args.jobs), flush=True)
        with multiprocessing.Pool(args.jobs, Worker.start, (place, scratch)) as pool:
            for result in pool.imap_unordered(one, ((seed + i, seconds) for i in range(args.kills))):
                targets[result["target"]] += 1
                causes.update(result["verdicts"])
                sums.update(opened=result["opened"], parts=result["parts"], nothing=result["opened"] == 0)
                for text in result["wrong"]:
                    wrong += 1
                    print("not ok - seed %d, %s killed: %s\n    repeat: make check-kills KILLS=1 SEED=%d" % (
                        result["seed"], result["target"], text, result["seed"]), flush=True)
                progress.say(sum(targets.values()), wrong)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("killed: " + ", ".join("%s %d" % t for t in targets.most_common()))
    print("verdicts: " + ", ".join("%s %d" % c for c in causes.most_common()))
    print("kills: %d, %d recordings opened with %d processes in them, %d too early to leave one, %d wrong" % (
        sum(targets.values()), sums["opened"], sums["parts"], sums["nothing"], wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
