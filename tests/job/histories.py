# SPDX-License-Identifier: Apache-2.0
"""Planted histories of a job: histories.py CUWHY [--ranks 1024] [--large 4096] [--only HISTORY]. Each is written as a job folder with skewed clocks; `cuwhy
explain` must name the first rank where it can be known, and say that it is not known where not. Prints times and sizes."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from world import World

FAULT = ("illegal-access-out-of-bounds", "a kernel read 4 bytes past the end of a tensor")
OOM = ("oom-request-too-large", "the GPU's memory is too small for this tensor")


class Expect:
    def __init__(self, first, how, ordered=True, earlier=None, late=None):
        self.first, self.how, self.ordered, self.earlier, self.late = sorted(first), how, ordered, earlier, late


def any_rank(w):
    return w.rnd.choice(w.ranks)


def elsewhere(w, rank):
    return w.rnd.choice([r for r in w.ranks if r.node != rank.node])


def fault(w, cause=FAULT):
    r = any_rank(w)
    w.own(r, w.now, *cause)
    w.others_lose([r], w.now)
    return Expect([r.number], "failed")


def fault_oom(w):
    return fault(w, OOM)


def fault_everybody_hurt(w):
    r = any_rank(w)
    w.own(r, w.now, *FAULT)
    w.others_lose([r], w.now, told=0)
    return Expect([r.number], "failed")


def disk_full(w):
    r = any_rank(w)
    w.end(r, w.now + 0.1, failed=w.now, exit_known=True, exit=1, exception="OSError", message="[Errno 28] No space left on device",
          title="OSError: [Errno 28] No space left on device")
    w.others_lose([r], w.now)
    return Expect([r.number], "failed")


def two_far_apart(w):
    a = any_rank(w)
    b = elsewhere(w, a)
    w.own(a, w.now, *FAULT)
    w.own(b, w.now + 1.0, *OOM)
    w.others_lose([a, b], w.now + 1.0)
    return Expect([a.number], "failed")


def two_at_once(w):
    a = any_rank(w)
    b = elsewhere(w, a)
    w.own(a, w.now, *FAULT)
    w.own(b, w.now + 0.00005, *OOM)
    w.others_lose([a, b], w.now)
    return Expect([a.number, b.number], "failed", ordered=False)


def two_on_one_node(w):
    a = any_rank(w)
    b = w.rnd.choice([r for r in w.ranks if r.node == a.node and r is not a])
    w.own(a, w.now, *FAULT)
    w.own(b, w.now + 0.00005, *OOM)
    w.others_lose([a, b], w.now)
    return Expect([a.number], "failed")


def no_shared_event(w):
    """Failed before the first collective: nothing relates the clocks, and the raw times would be wrong."""
    for r in w.ranks:
        r.times, r.called, r.done = {}, 0, 0
    a = any_rank(w)
    b = elsewhere(w, a)
    w.own(a, w.now, *FAULT)
    w.own(b, w.now + 3.0, *OOM)
    w.others_lose([a, b], w.now + 3.0)
    return Expect([a.number, b.number], "failed", ordered=False)


def killed(w):
    r = any_rank(w)
    w.told(r, w.now, 9)
    w.others_lose([r], w.now)
    return Expect([r.number], "killed")


def killed_then_all_killed(w):
    """The kernel takes one, the launcher the rest of its node much later, by the same signal."""
    r = any_rank(w)
    w.told(r, w.now, 9)
    for other in w.ranks:
        if other.node == r.node and other is not r:
            w.told(other, w.now + 31, 9)
    w.others_lose([r], w.now)
    return Expect([r.number], "killed")


def killed_apart(w, seconds, own_supervisors):
    """Two of one node, by signal 9."""
    w.own_supervisors = own_supervisors
    a = any_rank(w)
    b = w.rnd.choice([r for r in w.ranks if r.node == a.node and r is not a])
    w.told(a, w.now, 9)
    w.told(b, w.now + seconds, 9)
    w.others_lose([a, b], w.now + seconds)
    return a.number, b.number


def killed_at_once_by_two_supervisors(w):
    """Each was noticed by a supervisor of its own, one of them later by chance."""
    return Expect(killed_apart(w, 0.00005, True), "killed", ordered=False)


def killed_apart_by_two_supervisors(w):
    return Expect(killed_apart(w, 2.5, True)[:1], "killed")


def killed_apart_by_one_supervisor(w):
    """The end of the first made it look at the second."""
    return Expect(killed_apart(w, 0.03, False)[:1], "killed")


def fault_then_killed(w):
    """A launcher that ends ranks by signal 9 after one has failed."""
    r = any_rank(w)
    w.own(r, w.now, *FAULT)
    for other in w.ranks:
        if other is not r:
            w.told(other, w.now + w.rnd.uniform(1.5, 5), 9)
    return Expect([r.number], "failed")


def killed_then_fault(w):
    """The kernel takes one; another one fails by itself before a launcher has noticed, and crashes before its recorder notes its end."""
    w.own_supervisors = True
    a = any_rank(w)
    b = w.rnd.choice([r for r in w.ranks if r.node == a.node and r is not a])
    w.told(a, w.now, 9)
    w.end(b, w.now + 0.25, failed=w.now + 0.2, exit_known=True, exit=-1, signal=11, cause=FAULT[0], sure="certain", title=FAULT[1], own=True)
    w.others_lose([a, b], w.now + 0.25)
    return Expect([a.number], "killed")


def damaged_first(w):
    """The file of the first one is damaged, and another one fails by itself: it cannot be called the first."""
    a = any_rank(w)
    b = elsewhere(w, a)
    a.damaged_file = True
    w.own(a, w.now, *FAULT)
    w.own(b, w.now + 1.0, *OOM)
    w.others_lose([a, b], w.now + 1.0)
    return Expect([b.number], "failed", ordered=False)


def damaged_alone(w):
    """The file of the only one that failed is damaged: the others lost it."""
    a = any_rank(w)
    a.damaged_file = True
    w.own(a, w.now, *FAULT)
    w.others_lose([a], w.now, told=0)
    return Expect([], "missing")


def node_lost(w):
    r = any_rank(w)
    gone = [x for x in w.ranks if x.node == r.node]
    w.others_lose(gone, w.now, told=0)
    for x in gone:
        x.extra = {}
    return Expect([x.number for x in gone], "lost")


def node_without_files(w):
    r = any_rank(w)
    gone = [x for x in w.ranks if x.node == r.node]
    for x in gone:
        x.lost_file = True
    w.others_lose(gone, w.now, told=0)
    return Expect([], "missing", ordered=False)


def node_without_files_uneven(w):
    """Likewise, and some of the others had not come to the next collective yet: they are not to blame."""
    node = any_rank(w).node
    gone = [x for x in w.ranks if x.node == node]
    for x in gone:
        x.lost_file = True
    late = w.rnd.sample([x for x in w.ranks if x not in gone], 5)
    w.others_lose(gone, w.now, told=0)
    for x in late:
        x.called -= 1
    return Expect([], "missing", ordered=False)


def canceled(w):
    """Somebody ends the whole job: ranks are at different places, and none is to blame."""
    w.enters(w.rnd.sample(w.ranks, len(w.ranks) // 2))
    for x in w.ranks:
        w.told(x, w.now + w.rnd.uniform(0, 2))
    return Expect([], "none", ordered=False)


def divergence(w):
    r = any_rank(w)
    w.enters(w.ranks)
    r.ops[r.called] = ("all_gather", 4096, "bfloat16", "model.py:88")
    for x in w.ranks:
        w.hurt(x, w.now + 600 + w.rnd.uniform(0, 2), "it timed out waiting for its peers")
    return Expect([r.number], "diverged")


def divergence_count(w):
    r = any_rank(w)
    w.enters(w.ranks)
    r.ops[r.called] = ("all_reduce", 25557031, "float32", "train.py:60")
    for x in w.ranks:
        if x.node == r.node:
            w.told(x, w.now + 605)
        else:
            w.hurt(x, w.now + 600 + w.rnd.uniform(0, 2), "it timed out waiting for its peers")
    return Expect([r.number], "diverged")


def straggler(w):
    """One rank sits in a data loader, all others time out; then it is ended by its launcher."""
    r = any_rank(w)
    rest = [x for x in w.ranks if x is not r]
    w.enters(rest)
    for x in rest:
        w.hurt(x, w.now + 600 + w.rnd.uniform(0, 2), "it timed out waiting for its peers")
    w.told(r, w.now + 640)
    r.extra["doing"] = "data.py:112"
    return Expect([r.number], "absent")


def ended_long_before(w):
    """One rank had fewer batches and ended well."""
    r = any_rank(w)
    rest = [x for x in w.ranks if x is not r]
    w.end(r, w.now + 1, exit_known=True, exit=0)
    w.enters(rest)
    for x in rest:
        w.hurt(x, w.now + 600 + w.rnd.uniform(0, 2), "it timed out waiting for its peers")
    return Expect([r.number], "absent")


def chain(w):
    """All wait for rank a, which waits in a communicator of two for rank b, which never came."""
    a = any_rank(w)
    b = elsewhere(w, a)
    rest = [x for x in w.ranks if x not in (a, b)]
    w.enters(rest)
    pair = {"id": "bead", "size": 2, "called": 7, "done": 7}
    for x in rest:
        w.hurt(x, w.now + 600 + w.rnd.uniform(0, 2), "it timed out waiting for its peers")
    w.hurt(a, w.now + 601, "it timed out waiting for its peers")
    w.told(b, w.now + 640)
    a.extra["more_comms"] = [dict(pair, rank=0, called=8)]
    b.extra["more_comms"] = [dict(pair, rank=1)]
    return Expect([b.number], "absent")


def restart(w):
    """The first attempt fails, and so does the second, elsewhere."""
    first = fault(w)
    w.write(w.folder)
    again = World(w.rnd.random(), ranks=len(w.ranks), per_node=w.per_node)
    again.attempt, again.folder = 1, w.folder
    expect = fault(again, OOM)
    expect.earlier = first
    expect.world = again
    return expect


def healthy(w):
    for r in w.ranks:
        w.end(r, w.now + w.rnd.uniform(0, 1), exit_known=True, exit=0)
    return Expect([], "none", ordered=False)


def running(w):
    """Nothing failed, and every file is of another moment of the last minute: who had called less is not late."""
    for r in w.ranks:
        steps = w.rnd.randrange(300)
        r.called_at = w.now - steps * w.step
        r.written = r.called_at + w.rnd.uniform(0, w.step / 2)
        r.called -= steps
        r.done = 0
    return Expect([], "none", ordered=False)


def stuck(w):
    """One rank does not come, and nobody complains yet."""
    late = any_rank(w)
    for r in w.ranks:
        r.called_at = w.now + w.rnd.uniform(0, 0.02) if r is not late else w.now - w.step
        r.written = w.now + w.rnd.uniform(1, 60)
    w.enters([r for r in w.ranks if r is not late])
    return Expect([], "none", ordered=False, late=late.number)


def node_lost_early(w):
    """A machine dies half a minute after its last files: it is lost, and not late."""
    expect = node_lost(w)
    for x in w.ranks:
        if x.number in expect.first:
            x.called -= 150
            x.done = x.called
            x.called_at, x.written = w.now - 150 * w.step, w.now - 149.5 * w.step
    return expect


HISTORIES = [fault] * 5 + [fault_oom] * 3 + [fault_everybody_hurt] * 2 + [disk_full] * 2 + [two_far_apart] * 3 + [two_at_once] * 2 + \
            [two_on_one_node, no_shared_event] + [killed] * 3 + [killed_then_all_killed] * 2 + [killed_at_once_by_two_supervisors] * 2 + \
            [killed_apart_by_two_supervisors, killed_apart_by_one_supervisor] + [fault_then_killed] * 2 + [killed_then_fault] * 2 + [damaged_first, damaged_alone] + [node_lost] * 2 + \
            [node_without_files, node_without_files_uneven, canceled] + [divergence, divergence_count] + [straggler] * 2 + [ended_long_before, chain] + [restart] * 2 + [healthy] + \
            [running, stuck, node_lost_early]


def ask(cuwhy, folder):
    begin = time.monotonic()
    done = subprocess.run([cuwhy, "explain", folder, "--json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout), time.monotonic() - begin, done.returncode


def differences(got, expect):
    first = sorted(x["rank"] for x in got["first"])
    if got["how"] != expect.how:
        yield "how is %s, not %s" % (got["how"], expect.how)
    if first != expect.first:
        yield "first is %s, not %s" % (first, expect.first)
    if expect.how == "none" and (expect.late is not None) != bool(got["because"]):
        yield "because %s" % got["because"]
    if expect.late is not None and "others wait for rank %d " % expect.late not in got["title"]:
        yield "not rank %d: %s" % (expect.late, got["title"])
    if got["ordered"] != expect.ordered:
        yield "ordered is %s" % got["ordered"]
    if expect.earlier:
        yield from differences(got["earlier"][0], expect.earlier)


def run(cuwhy, plant, seed, ranks, folder):
    w = World(seed, ranks=ranks)
    w.folder = folder
    expect = plant(w)
    sizes = getattr(expect, "world", w).write(folder)
    got, seconds, status = ask(cuwhy, folder)
    wrong = list(differences(got, expect))
    if status != (0 if expect.how == "none" else 1):
        wrong.append("exit status %d" % status)
    if max(sizes) >= 4096:
        wrong.append("a file has %d bytes" % max(sizes))
    print("%s %-24s %4d ranks  %.2f s  files %d to %d bytes  %s" %
          ("FAIL" if wrong else "ok  ", plant.__name__, ranks, seconds, min(sizes), max(sizes), "; ".join(wrong) or got["title"][:90]), flush=True)
    return not wrong, seconds


def main():
    options = argparse.ArgumentParser()
    options.add_argument("cuwhy")
    options.add_argument("--ranks", type=int, default=1024)
    options.add_argument("--large", type=int, default=4096)
    options.add_argument("--limit", type=float, default=3.0, help="seconds for the large job")
    options.add_argument("--once", action="store_true", help="each history once")
    options.add_argument("--only", help="this history alone; `list` prints them")
    given = options.parse_args()
    plants = list(dict.fromkeys(HISTORIES)) if given.once else HISTORIES
    if given.only == "list":
        print("\n".join(dict.fromkeys(plant.__name__ for plant in plants)))
        return 0
    right = 0
    for seed, plant in enumerate(plants):
        if given.only not in (None, plant.__name__):
            continue
        folder = tempfile.mkdtemp(prefix="cuwhy-job-")
        ok, _ = run(given.cuwhy, plant, seed, given.ranks, folder)
        right += ok
        shutil.rmtree(folder)
    if given.only:
        tried = sum(plant.__name__ == given.only for plant in plants)
        return 0 if right == tried > 0 else 1
    print("%d of %d histories right" % (right, len(plants)))
    folder = tempfile.mkdtemp(prefix="cuwhy-job-")
    ok, seconds = run(given.cuwhy, fault, 99, given.large, folder)
    shutil.rmtree(folder)
    print("%d ranks: %.2f s (limit %.1f s)" % (given.large, seconds, given.limit))
    return 0 if right == len(plants) and ok and seconds < given.limit else 1


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main())
