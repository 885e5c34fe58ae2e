# SPDX-License-Identifier: Apache-2.0
"""`cuwhy memory --pid`: what keeps the tensors of a program that goes on meanwhile."""
import contextlib
import json
import os
import signal
import subprocess

import json_page
from harness import PATIENCE
from rules_blocks import under
from rules_holders import PIECES, TENSORS
from rules_recorder import find_pythons
from toolbox import HERE, Skip, same, wait_until

# Four ways to keep tensors, and a loop that makes and drops objects, and tensors, all the time. It counts the signals that reach it.
BUSY = TENSORS + """
import sys, functools, signal, threading, time
""" + "".join(code + "\n" for what, code, *_ in PIECES if what in (
    "attributes", "a closure", "a deque", "parameters and a cache of a module")) + """
came = [0]
def count(*_): came[0] += 1
signal.signal(signal.SIGUSR1, count)
def churn():
    passing = []
    while True:
        passing.append({"loss": [object()] * 10, "step": len(passing)})
        if len(passing) > 50: passing = passing[25:]
def report():
    for line in sys.stdin:
        print(came[0], flush=True)
        if line == "end\\n": os._exit(0)
threading.Thread(target=report, daemon=True).start()
for _ in range(2): threading.Thread(target=churn, daemon=True).start()
def main():
    ring = collections.deque(tensors(8))
    print("ready", flush=True)
    while True:
        ring.append(ring.popleft())
        churned = [dict(a=n) for n in range(100)]
main()
"""
KEPT = ["net", "ring", "step → closure of step(): inside", "trainer.metrics.history", "window"]


@contextlib.contextmanager
def running(box, program, python=None):
    """A program under cuwhy, and its number."""
    if python:
        box.python = python
    command = [box.cuwhy, "run", "--gpu", "sim:tiny", "--out", os.path.join(box.scratch, "recording"), "--", *box.script(program)]
    env = box.env(FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    started = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = None
    try:
        same(started.stdout.readline(), "ready\n", "the program")
        pid = child_of(started.pid)
        yield started, pid
    finally:
        if pid and started.poll() is None:
            os.kill(pid, signal.SIGKILL)
        started.communicate(timeout=PATIENCE)


def child_of(pid):
    """The program itself: of the children of `cuwhy run`, the one that is no part of it."""
    found = []

    def look():
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
            for child in children.read().split():
                with open("/proc/%s/comm" % child, encoding="ascii") as comm:
                    if not comm.read().startswith("cuwhy"):
                        found.append(int(child))
        return bool(found)
    wait_until(look, "the program")
    return found[0]


def asked(box, pid, *options):
    return subprocess.run([box.cuwhy, "memory", "--pid", str(pid), *options], env=box.env(), capture_output=True, text=True,
                          timeout=PATIENCE)


def answer(box, pid, tries=20):
    """A path of which a link changes while it is read is left out: then the program is asked once more."""
    for _ in range(tries):
        done = asked(box, pid, "--json")
        same((done.returncode, done.stderr), (0, ""), "cuwhy memory --pid")
        said = json.loads(done.stdout)
        same(list(json_page.flaws(said, "kept")), [], "flaws of the documented JSON")
        if not said["changed"]:
            break
    return said


def said(run):
    """How many signals have reached it; Python calls its handlers between two instructions of the main thread, whose turn may be late."""
    run.stdin.write("say\n"), run.stdin.flush()
    return int(run.stdout.readline())


def rule__a_program_that_runs_is_asked_who_keeps_its_tensors(box):
    """On every Python. It loses no signal, and goes on."""
    pythons = find_pythons()
    if not pythons:
        raise Skip("no python3.9 to python3.14 here")
    for version, python in sorted(pythons.items()):
        with running(box.fresh(), BUSY, python) as (run, pid):
            for n in range(1, 4):
                os.kill(pid, signal.SIGUSR1)
                told = answer(box, pid)
                same(sorted(h["path"] for h in told["holders"]), KEPT, "%s: %s" % (version, told))
                wait_until(lambda: said(run) == n, "signal %d, %s" % (n, version))
            run.stdin.write("end\n"), run.stdin.flush()
            run.wait(PATIENCE)


def rule__a_program_that_sleeps_is_asked_without_a_stop(box):
    with running(box, TENSORS + """
import sys
kept = tensors(12)
print("ready", flush=True)
sys.stdin.readline()
""") as (_, pid):
        told = answer(box, pid)
        same(([(h["path"], h["length"], h["blocks"]) for h in told["holders"]], told["stopped_ms"]), ([("kept", 12, 12)], 0), told)
        shown = asked(box, pid)
        same("`kept`, a list of 12: 12 tensors; allocated at " in shown.stdout, True, shown.stdout)


def rule__a_program_that_is_stopped_stays_so(box):
    with running(box, TENSORS + """
kept = tensors(12)
print("ready", flush=True)
while True: churned = [dict(a=n) for n in range(100)]
""") as (_, pid):
        def state():
            with open("/proc/%d/stat" % pid, encoding="ascii") as stat:
                return stat.read().rpartition(")")[2].split()[0]
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: state() == "T", "the stop")
        same([h["path"] for h in answer(box, pid)["holders"]], ["kept"], "of a stopped program")
        same(state(), "T", "afterwards")
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: state() == "R", "that it goes on")


def rule__names_that_are_secrets_are_not_told(box):
    with running(box, TENSORS + """
import sys
sessions = {"hf_plugh12AbCdEfGhIjKlMnOp1": tensors(9)}
class Keys: pass
keys = Keys()
setattr(keys, "AKIAPLUGH12ABCDEFGH", tensors(7))
print("ready", flush=True)
sys.stdin.readline()
""") as (_, pid):
        shown = asked(box, pid).stdout
        same([h["path"] for h in answer(box, pid)["holders"]], ["sessions['(removed)']", "keys.(removed)"], "in JSON")
        assert "(removed)" in shown and "plugh" not in shown.lower(), shown


MARKED = TENSORS + """
import sys
sys.path.insert(0, %r)
os.environ["CUWHY_PROGRAM"] = %r
import cuwhy
class Trainer: pass
def main():
    trainer = Trainer()
    trainer.outputs = tensors(9)
    held = cuwhy.held()
    print(held.holders[0].path, held.holders[0].length, len(held.holders), held.bytes == 9 * each, held.unheld_bytes, held.whole)
main()
"""


def rule__a_program_asks_itself_who_keeps_its_tensors(box):
    run = under(box, MARKED % (os.path.join(HERE, "..", "..", "python"), box.cuwhy))
    same((run.status, run.out), (0, "trainer.outputs 9 1 True 0 True\n"), run.err[-1500:])


def rule__a_program_is_watched_until_it_ends_or_ctrl_c(box):
    sleeps = TENSORS + "import sys\nkept = tensors(12)\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    for ends in ("program", "watch"):
        with running(box.fresh(), sleeps) as (run, pid):
            watch = subprocess.Popen([box.cuwhy, "memory", "--pid", str(pid), "--watch", "--json"], env=box.env(), stdout=subprocess.PIPE,
                                     text=True)
            same(json.loads(watch.stdout.readline())["holders"][0]["path"], "kept", ends)
            if ends == "program":
                run.stdin.write("\n"), run.stdin.flush()
            else:
                wait_until(lambda: "SigCgt:\t0000000000000000" not in open("/proc/%d/status" % watch.pid, encoding="ascii").read(), "its handler")
                watch.send_signal(signal.SIGINT)
            same(watch.wait(PATIENCE), 0, ends)
            watch.stdout.close()


def rule__a_process_that_is_not_recorded_is_refused(box):
    plain = subprocess.Popen(["sleep", "60"])
    try:
        told = asked(box, plain.pid)
        same((told.returncode, "is not recorded" in told.stderr, "cuwhy run" in told.stderr), (2, True, True), told.stderr)
    finally:
        plain.kill()
        plain.wait()
    told = asked(box, plain.pid)
    same((told.returncode, "there is no process" in told.stderr), (2, True), told.stderr)
    same(asked(box, "x").returncode, 2, "no number")
