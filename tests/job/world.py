# SPDX-License-Identifier: Apache-2.0
"""A job that never ran: ranks on nodes whose clocks differ, their collectives, what failed in one and what that did to the others.

Everything happens at a true time that no node knows. A file of the job folder has only what its node could know: times of its own
clock. What the right answer is follows from the true times and from how the history was planted, not from any reading of the files."""
import hashlib
import json
import os
import random

SECOND = 10**9
SKEW = 5.0      # seconds, either way
AGAIN = 0.000002        # seconds from noticing an end to the look at the others
PASS = 1.0      # seconds: at least so often a supervisor looks at its processes
NOTICED = 0.0005        # seconds from an end to the pass that it causes, at most


class Rank:
    def __init__(self, number, node):
        self.number, self.node = number, node
        self.called, self.done = 0, 0
        self.times = {}         # call: (in, out), true seconds
        self.ops = {}           # call: (op, count, type, line), where it is not the usual one
        self.state, self.ended, self.failed = "running", None, None
        self.extra = {}
        self.lost_file = self.damaged_file = False
        self.written, self.called_at = None, None   # of one that runs: when its file was written; when the newest call was made


class World:
    """Ranks that have done `steps` all_reduces together, one every `step` seconds."""

    def __init__(self, seed, ranks=1024, per_node=8, steps=600, step=0.2):
        self.rnd = random.Random(seed)
        self.per_node, self.step = per_node, step
        self.ranks = [Rank(i, i // per_node) for i in range(ranks)]
        n_nodes = (ranks + per_node - 1) // per_node
        self.skew = [self.rnd.uniform(-SKEW, SKEW) for _ in range(n_nodes)]
        self.boot = [self.rnd.uniform(1e3, 1e7) for _ in range(n_nodes)]    # since when the machine runs
        self.attempt, self.job, self.now = 0, "4711", 0.0
        self.own_supervisors = False    # one `cuwhy run` per rank (srun, mpirun), not one per node (torchrun)
        self.ends = {}                  # of each supervisor: when it noticed which rank's
        self.collectives(steps)

    def collectives(self, n):
        """All ranks do n more; kept as marks are the ones that ranks keep."""
        first, last = self.ranks[0].called + 1, self.ranks[0].called + n
        keep = kept_marks(last)
        for rank in self.ranks:
            rank.called = rank.done = last
        for seq in range(first, last + 1):
            self.now += self.step
            if seq not in keep:
                continue
            came = [self.now + self.rnd.uniform(0, 0.02) for _ in self.ranks]
            over = max(came)
            for rank, t in zip(self.ranks, came):
                rank.times[seq] = (t, over + self.rnd.uniform(0.0005, 0.01))
        self.now += 0.05

    # --- what happens to a rank, at a true time ---

    def end(self, rank, at, failed=None, **extra):
        rank.state, rank.ended, rank.failed = "ended", at, failed
        rank.extra = dict(extra)

    def own(self, rank, at, cause, title, **extra):
        self.end(rank, at + 0.3, failed=at, exit_known=True, exit=1, cause=cause, sure="certain", title=title, own=True, **extra)

    def hurt(self, rank, at, words="it lost the connection to its peers"):
        self.end(rank, at + 0.2, failed=at, exit_known=True, exit=1, exception="DistBackendError", message="NCCL error", of_peers=words)

    def told(self, rank, at, number=15):
        self.end(rank, at, exit_known=True, exit=-1, signal=number)

    def enters(self, ranks):
        """They call the next all_reduce and wait in it."""
        for rank in ranks:
            rank.called += 1

    def others_lose(self, but, at, told=0.2):
        """Each of the others notices that a peer is gone, or is ended by its launcher."""
        rest = [r for r in self.ranks if r not in but and r.state == "running"]
        self.enters(rest)
        for rank in rest:
            if self.rnd.random() < told:
                self.told(rank, at + self.rnd.uniform(1.5, 3))
            else:
                self.hurt(rank, at + self.rnd.uniform(0.6, 1.4))

    # --- what supervisors see ---

    def supervisor(self, rank):
        return rank.number if self.own_supervisors else rank.node

    def seen(self, rank):
        """The last look that found the rank alive, and when its end was noticed. An end makes its supervisor look at all the others, too. A
        rank that leaves by itself writes down when."""
        if rank.extra.get("exit", -1) >= 0:
            return rank.ended, rank.ended
        mine = self.supervisor(rank)
        phase = random.Random("%s of %s" % (mine, self.job)).uniform(0, PASS)
        last = phase + (rank.ended - phase) // PASS * PASS
        for noticed in self.ends[mine].values():
            if noticed + AGAIN < rank.ended:
                last = max(last, noticed + AGAIN)
        return last, self.ends[mine][rank.number]

    # --- files ---

    def clock(self, node, t):
        return int((t + self.boot[node]) * SECOND) if t is not None else 0

    def comm(self, rank):
        digests = {}
        comm = {"id": "c0ffee0123456789", "rank": rank.number, "size": len(self.ranks), "called": rank.called, "done": rank.done}
        if rank.called_at is not None:
            comm["called_ns"] = self.clock(rank.node, rank.called_at)
        comm["marks"] = []
        for seq in sorted(rank.times):
            if seq <= rank.done:
                digests[seq] = self.digest(rank, seq)
                begin, over = rank.times[seq]
                comm["marks"].append({"seq": seq, "in_ns": self.clock(rank.node, begin), "out_ns": self.clock(rank.node, over),
                                      "digest": "0x%x" % digests[seq]})
        comm["calls"] = []
        for seq in range(max(1, rank.called - 7), rank.called + 1):
            op, count, kind, line = rank.ops.get(seq, ("all_reduce", 25557032, "float32", "train.py:60"))
            comm["calls"].append({"seq": seq, "op": op, "count": count, "type": kind, "line": line})
        return comm

    @staticmethod
    def digest(rank, seq):
        odd = [(s, rank.ops[s]) for s in sorted(rank.ops) if s <= seq]
        return int(hashlib.sha256(repr((seq, odd)).encode()).hexdigest()[:15], 16) | 1

    def file(self, rank):
        written = rank.ended if rank.ended is not None else rank.written if rank.written is not None else self.now
        o = {"cuwhy_job": 1, "job": self.job, "attempt": self.attempt, "rank": rank.number, "world": len(self.ranks),
             "local": rank.number % self.per_node, "node": "n%03d" % rank.node, "boot": "boot-%d" % rank.node,
             "command": "python train.py --config configs/llama-7b.yaml", "pid": 1000 + rank.number,
             "started_ns": self.clock(rank.node, 0), "written_ns": self.clock(rank.node, written),
             "real_ns": int((1.8e9 + written + self.skew[rank.node]) * SECOND), "state": rank.state,
             "doing": "train.py:58"}
        if rank.ended is not None:
            alive, noticed = self.seen(rank)
            o["ended_ns"] = self.clock(rank.node, noticed)
            o["alive_ns"] = self.clock(rank.node, alive)
        if rank.failed is not None:
            o["failed_ns"] = self.clock(rank.node, rank.failed)
        o.update(rank.extra)
        o["comms"] = [self.comm(rank)] + o.pop("more_comms", [])
        return o

    def write(self, folder):
        """The bytes of each file."""
        where = os.path.join(folder, "job-" + self.job, "attempt-%d" % self.attempt)
        os.makedirs(where, mode=0o700, exist_ok=True)
        sizes = []
        self.ends = {}
        for rank in self.ranks:
            if rank.ended is not None:
                self.ends.setdefault(self.supervisor(rank), {})[rank.number] = rank.ended + self.rnd.uniform(0, NOTICED)
        for rank in self.ranks:
            if rank.lost_file:
                continue
            text = json.dumps(self.file(rank), separators=(",", ":"))
            sizes.append(len(text))
            with open(os.path.join(where, "rank-%d.n%03d.%d.json" % (rank.number, rank.node, 1000 + rank.number)), "w", encoding="utf-8") as f:
                f.write(text[:len(text) // 2] if rank.damaged_file else text)
        return sizes


def kept_marks(last):
    """As the recorder keeps them: the newest multiple of each power of two."""
    kept, power = set(), 1
    while power <= last and len(kept) < 16:
        kept.add(last - last % power)
        power *= 2
    return kept | {1}
