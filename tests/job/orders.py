# SPDX-License-Identifier: Apache-2.0
"""Jobs in which one rank's collectives differ from those of the others: orders.py CUWHY [--seeds N] [--only NAME]. The programs of all ranks are
written down, the one of the planted rank is changed, and the ranks are played until none can go on. So who is odd is true by construction: the planted
rank, if at least two others of its communicator agree with each other; with two ranks, either may be wrong, and `cuwhy explain` must blame neither."""
import argparse
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

from world import World

SUM = ("all_reduce", 25557032, "float32", "train.py:60")
BARRIER = ("all_reduce", 1, "uint8", "train.py:71")
SAVE = ("all_reduce", 1, "uint8", "save.py:12")
METRIC = ("all_reduce", 64, "float32", "metrics.py:30")
STEPS = 14      # more calls than a file keeps


class Job(World):
    """`programs` is what each rank calls, in order: (communicator, call). `groups` are the ranks of each communicator."""

    def __init__(self, seed, groups, programs):
        super().__init__(seed, ranks=len(programs), per_node=2, steps=0)
        self.groups, self.programs = groups, programs
        self.own_supervisors = True
        self.made = {(r.number, c): [] for r in self.ranks for c in groups if r.number in groups[c]}
        self.at = [0] * len(programs)
        self.stalled = {}       # rank: before which of its calls it stays for ever

    def came(self, comm, seq):
        return [r for r in self.groups[comm] if len(self.made[r, comm]) >= seq]

    def may_go_on(self, rank, blocks):
        """Has its newest call ended? A call ends when all ranks have come to it; of different calls, none may."""
        if self.at[rank] == 0:
            return True
        comm, _ = self.programs[rank][self.at[rank] - 1]
        seq = len(self.made[rank, comm])
        if len(self.came(comm, seq)) < len(self.groups[comm]):
            return False
        return not blocks or len({self.made[r, comm][seq - 1][0][:3] for r in self.groups[comm]}) == 1

    def play(self, blocks):
        moved = True
        while moved:
            moved = False
            for rank, program in enumerate(self.programs):
                if self.at[rank] == len(program) or self.stalled.get(rank) == self.at[rank] or not self.may_go_on(rank, blocks):
                    continue
                comm, call = program[self.at[rank]]
                self.now += 0.01
                self.made[rank, comm].append((call, self.now))
                self.at[rank] += 1
                moved = True
        return [r for r in range(len(self.programs)) if not self.may_go_on(r, blocks)]

    def finish(self, waiting, told):
        """Those that wait complain after ten minutes, or are ended from outside; the others have ended well, or stay where they are."""
        for r in self.ranks:
            if r.number in waiting:
                if told:
                    self.told(r, self.now + 600 + self.rnd.uniform(0, 2))
                else:
                    self.hurt(r, self.now + 600 + self.rnd.uniform(0, 2), "it timed out waiting for its peers")
            elif r.number in self.stalled:
                self.told(r, self.now + 640)
            else:
                self.end(r, self.now + self.rnd.uniform(0.1, 1), exit_known=True, exit=0)

    def file(self, rank):
        o = super().file(rank)
        o["comms"] = [self.comm_of(rank, comm) for number, comm in self.made if number == rank.number]
        return o

    def comm_of(self, rank, comm):
        made, ranks = self.made[rank.number, comm], self.groups[comm]
        told = {"id": hashlib.sha256(comm.encode()).hexdigest()[:16], "rank": ranks.index(rank.number), "size": len(ranks), "called": len(made), "done": 0,
                "marks": [{"seq": 0, "in_ns": self.clock(rank.node, 0.1 + 0.001 * rank.number), "out_ns": self.clock(rank.node, 0.2)}]}
        if made:
            told["called_ns"] = self.clock(rank.node, made[-1][1])
            last = 1 << (len(made).bit_length() - 1)
            told["marks"].append({"seq": last, "in_ns": 0, "out_ns": 0, "digest": "0x" + hashlib.sha256(repr([c[:3] for c, _ in made[:last]]).encode()).hexdigest()[:15]})
        told["calls"] = [{"seq": seq, "op": c[0], "count": c[1], "type": c[2], "line": c[3]} for seq, (c, _) in list(enumerate(made, 1))[-8:]]
        return told


def usual(rank, groups):
    """A training: its group, then all ranks, at every step; a barrier at the end."""
    mine = [c for c in groups if c != "world" and rank in groups[c]]
    program = []
    for _ in range(STEPS):
        program += [(c, METRIC) for c in mine] + [("world", SUM)]
    return program + [("world", BARRIER)]


def halves(n):
    return {"world": list(range(n)), "low": list(range((n + 1) // 2)), "high": list(range((n + 1) // 2, n))}


def place(program, comm, where):
    """Where a call of `comm` is put, or which one is changed."""
    own = [i for i, (c, _) in enumerate(program) if c == comm]
    return {"first": own[0], "middle": own[len(own) // 2], "last": own[-1] + 1}[where]


def change(program, comm, what, where):
    at = place(program, comm, where)
    last = where == "last"
    if what in ("extra", "same"):       # a call of another kind, or one more of the kind that is usual there
        call = SAVE if what == "extra" else program[max(0, at - 1) if last else at][1]
        return program[:at] + [(comm, call[:3] + ("save.py:12",))] + program[at:]
    at -= last
    c, call = program[at]
    if what == "less":
        return program[:at] + program[at + 1:]
    if what == "size":
        call = (call[0], call[1] + 1) + call[2:]
    if what == "type":
        call = call[:2] + ("bfloat16",) + call[3:]
    if what == "op":
        call = ("broadcast",) + call[1:]
    return program[:at] + [(c, call)] + program[at + 1:]


def odd_one(seed, n, odd, what, where, comm, blocks):
    """One rank calls one collective more or less than the others of its communicator, or another one."""
    groups = {"world": list(range(n))} if comm == "world" else halves(n)
    programs = [usual(r, groups) for r in range(n)]
    if comm != "world":
        comm = next(c for c in groups if c != "world" and odd in groups[c])
        if len(groups[comm]) == 1:
            return None
    programs[odd] = change(programs[odd], comm, what, where)
    job = Job(seed, groups, programs)
    waiting = job.play(blocks)
    if not waiting:
        return None     # NCCL did not notice, and nothing hangs
    job.finish(waiting, told=False)
    members = groups[comm]
    return job, {odd} if len(members) > 2 else set(members)


def slow_one(seed, n, odd, where):
    """One rank stays in its data loader: it is behind, and its calls are those of the others."""
    groups = {"world": list(range(n))}
    job = Job(seed, groups, [usual(r, groups) for r in range(n)])
    job.stalled[odd] = {"first": 0, "middle": STEPS // 2, "last": STEPS}[where]
    job.finish(job.play(True), told=False)
    return job, {odd} if n > 2 else {0, 1}


def dead_one(seed, n, odd, where):
    """One rank fails by itself, and the others wait for it."""
    groups = {"world": list(range(n))}
    job = Job(seed, groups, [usual(r, groups) for r in range(n)])
    job.stalled[odd] = {"first": 0, "middle": STEPS // 2, "last": STEPS}[where]
    waiting = job.play(True)
    when = job.now + 0.01
    job.finish(waiting, told=False)
    job.own(job.ranks[odd], when, "oom-capacity", "the GPU is out of memory")
    return job, {odd}


def busy_others(seed, n, odd):
    """One rank alone waits, and the others are elsewhere and have not ended: they may be slow, or it may have called one more."""
    groups = {"world": list(range(n))}
    programs = [usual(r, groups) for r in range(n)]
    job = Job(seed, groups, programs)
    job.stalled = {r: 2 * STEPS // 3 for r in range(n) if r != odd}
    job.finish(job.play(True), told=False)
    return job, set(range(n))


def fine(seed, n):
    groups = halves(n)
    job = Job(seed, groups, [usual(r, groups) for r in range(n)])
    job.finish(job.play(True), told=False)
    return job, set()


def cases():
    seed = 0
    for n, where in itertools.product((2, 3, 4, 8), ("first", "middle", "last")):
        for odd in sorted({0, n // 2, n - 1}):
            for what, comm, blocks in itertools.product(("extra", "same", "less", "size", "type", "op"), ("world", "group"), (True, False)):
                seed += 1
                yield "%s-%s-%s-%d-of-%d%s" % (what, where, comm, odd, n, "" if blocks else "-unnoticed"), seed, odd_one, (n, odd, what, where, comm, blocks)
            for plant in (slow_one, dead_one):
                seed += 1
                yield "%s-%s-%d-of-%d" % (plant.__name__, where, odd, n), seed, plant, (n, odd, where)
            if where == "first":
                seed += 1
                yield "busy_others-%d-of-%d" % (odd, n), seed, busy_others, (n, odd)
        if where == "first":
            yield "fine-%d" % n, seed, fine, (n,)


def wrong_about(cuwhy, job, truth):
    """What is wrong with the answer; None: nothing. An answer that is sure of a rank that is not odd is worse than one that is open."""
    folder = tempfile.mkdtemp(prefix="cuwhy-order-")
    try:
        job.write(folder)
        done = subprocess.run([cuwhy, "explain", folder, "--json"], stdout=subprocess.PIPE, check=False)
    finally:
        shutil.rmtree(folder)
    got = json.loads(done.stdout)
    first, sure = {x["rank"] for x in got["first"]}, got["ordered"]
    if sure and (len(truth) > 1 or not first <= truth):
        return "CERTAIN, WRONG: %s; it is %s" % (got["title"], sorted(truth))
    if first != truth or sure != (len(truth) == 1):
        return "%s (first %s, ordered %s); it is %s" % (got["title"], sorted(first), sure, sorted(truth))
    return None


def main():
    options = argparse.ArgumentParser()
    options.add_argument("cuwhy")
    options.add_argument("--only", help="this history alone")
    options.add_argument("--every", type=int, default=1, help="only each Nth")
    given = options.parse_args()
    tried = wrong = certain = 0
    for number, (name, seed, plant, words) in enumerate(cases()):
        if given.only not in (None, name) or number % given.every:
            continue
        planted = plant(seed, *words)
        if planted is None:
            continue
        flaw = wrong_about(given.cuwhy, *planted)
        tried += 1
        wrong += flaw is not None
        certain += flaw is not None and flaw.startswith("CERTAIN")
        if flaw:
            print("FAIL %s: %s" % (name, flaw), flush=True)
    print("%d of %d orders right, %d wrong and certain" % (tried - wrong, tried, certain))
    return 0 if tried and not wrong else 1


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main())
