# SPDX-License-Identifier: Apache-2.0
"""`cuwhy explain --pid` stops threads that run: nothing that happens to a thread at that moment may be lost, and no call of it may end early. The
worst moment is made, not waited for (programs/between.c)."""
import contextlib
import errno
import os
import signal
import subprocess
import sys

import storm
from toolbox import PATIENCE, Skip, each, same, wait_until

ENDS_BY_INPUT = ("epoll_wait", "poll", "read", "select", "exec")
# what each call returns when nothing disturbs it; those with a time limit reach it
CALLS = {
    "epoll_wait": (1, 0), "poll": (1, 0), "read": (1, 0), "select": (1, 0), "semop": (-1, errno.EAGAIN), "recv": (-1, errno.EAGAIN),
    "sigtimedwait": (-1, errno.EAGAIN), "nanosleep": (0, 0), "futex": (-1, errno.ETIMEDOUT), "msgrcv": (8, 0), "vfork": (1, 0),
}


@contextlib.contextmanager
def target(box, action):
    """The program, running; its file, which is set at the worst moment."""
    path = os.path.join(box.scratch, "moment")
    with open(path, "wb") as f:
        f.write(b"\0\0\0")
    process = subprocess.Popen([box.program("worst_moment", "-lpthread"), path, action], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        same(process.stdout.readline(), "ready\n", "said")
        yield process, path
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        return f.read().rpartition(") ")[2][0]


def tracer_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return [line.split()[1] for line in f if line.startswith("TracerPid:")]


def look(box, process, path, window="200ms", **env):
    run = subprocess.run([box.cuwhy, "explain", "--pid", str(process.pid), "--look", window], capture_output=True, text=True, timeout=PATIENCE,
                         start_new_session=True, env=box.env(LD_PRELOAD=box.library("between", "-ldl"), BETWEEN_FILE=path, **env))
    with open(path, "rb") as f:
        same(f.read(1), b"1", "the thread was stopped (%s%s)" % (run.stdout, run.stderr))
    return run


def counted(process):
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=PATIENCE)[0].split()


FIRST = signal.SIGRTMIN
SIGNALS = {     # those that come at the worst moment -> number:how often:value of the last
    "one": ("%d" % FIRST, ["%d:1:1" % FIRST]),
    "an_alarm": ("%d" % signal.SIGALRM, ["%d:1:1" % signal.SIGALRM]),
    "of_a_child": ("%d" % signal.SIGCHLD, ["%d:1:1" % signal.SIGCHLD]),
    "several": ("%d %d %d %d" % (FIRST, FIRST, FIRST + 1, signal.SIGUSR1), ["%d:1:4" % signal.SIGUSR1, "%d:2:2" % FIRST, "%d:1:3" % (FIRST + 1)]),
}


@each(sorted(SIGNALS))
def rule__signals_that_come_while_a_thread_is_being_stopped_are_delivered(box, name):
    numbers, expected = SIGNALS[name]
    with target(box, "count") as (process, path):
        same(look(box, process, path, BETWEEN_SIGNALS=numbers).returncode, 0, "status")
        same([word for word in counted(process) if not word.startswith("%d:" % signal.SIGTERM)], expected, "delivered")


@each(sorted(SIGNALS))
def rule__they_are_delivered_even_if_cuwhy_is_killed_in_the_middle(box, name):
    numbers, expected = SIGNALS[name]
    with target(box, "count") as (process, path):
        same(look(box, process, path, BETWEEN_SIGNALS=numbers, BETWEEN_KILL="1").returncode, -signal.SIGKILL, "status")
        wait_until(lambda: state_of(process.pid) == "R", "it goes on")
        same([word for word in counted(process) if not word.startswith("%d:" % signal.SIGTERM)], expected, "delivered")


def rule__a_program_that_is_stopped_by_a_signal_stays_stopped(box):
    with target(box, "count") as (process, path):
        look(box, process, path, BETWEEN_SIGNALS="%d" % signal.SIGSTOP)
        same((state_of(process.pid), tracer_of(process.pid)), ("T", ["0"]), "state after SIGSTOP at the worst moment")
        look(box, process, path)
        same((state_of(process.pid), tracer_of(process.pid)), ("T", ["0"]), "state after a look at a stopped program")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: state_of(process.pid) == "R", "it goes on")


@each(sorted(CALLS))
def rule__a_call_that_begins_while_a_thread_is_being_stopped_does_not_end_early(box, action):
    with target(box, action) as (process, path):
        look(box, process, path)
        if action in ENDS_BY_INPUT:
            same(process.poll(), None, "it still waits")
        out, _ = process.communicate("x" if action in ENDS_BY_INPUT else None, timeout=PATIENCE)
        same(out, "%s %d %d\n" % ((action,) + CALLS[action]), "returned")


# Takes the only processor that the target may use: for longer than a stop ever takes, or until the target is given up.
HOG = """
import mmap, os, sys, time
moment = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 3)
os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
while not moment[1]:
    time.sleep(0.001)
moment[2] = 1
end = time.monotonic() + 0.3
while time.monotonic() < end and "TracerPid:\\t0" not in open("/proc/%s/status" % sys.argv[3]).read():
    pass
"""


def rule__nor_does_it_where_the_thread_has_to_wait_for_a_processor(box):
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        raise Skip("needs root and two processors, to take one away")
    with target(box, "epoll_wait") as (process, path):
        cpu = min(os.sched_getaffinity(process.pid))
        os.sched_setaffinity(process.pid, {cpu})
        hog = subprocess.Popen([sys.executable, "-c", HOG, path, str(cpu), str(process.pid)])
        try:
            look(box, process, path, "3s", BETWEEN_HOG="1")     # the next one comes when the hog has ended
        finally:
            hog.kill()
            hog.wait()
        same(process.poll(), None, "it still waits")
        same(process.communicate("x", timeout=PATIENCE)[0], "epoll_wait 1 0\n", "returned")


def rule__a_handler_still_ends_a_call_that_was_made_again(box):
    """A signal for which there is a handler ends epoll_wait, whether cuwhy looks or not."""
    with target(box, "epoll_wait") as (process, path):
        look(box, process, path)
        process.send_signal(signal.SIGUSR1)
        same(process.stdout.readline(), "epoll_wait -1 %d\n" % errno.EINTR, "returned")


def rule__a_program_that_calls_exec_meanwhile_goes_on(box):
    with target(box, "exec") as (process, path):
        look(box, process, path)
        same(tracer_of(process.pid), ["0"], "its debugger")
        same(process.communicate("x", timeout=PATIENCE)[0], "read 1 0\n", "said")


def rule__a_thread_that_ends_meanwhile_is_let_go(box):
    with target(box, "leave") as (process, path):
        look(box, process, path)
        same((state_of(process.pid), tracer_of(process.pid)), ("Z", ["0"]), "its main thread")
        same(process.communicate("x", timeout=PATIENCE)[0], "other 1\n", "said")


def rule__a_storm_of_signals_loses_none_and_no_call_ends_early(box):
    """Ten million are sent by hand: storm.py."""
    told = storm.storm(box.cuwhy, box.library("storm"), 30_000, 4, box.scratch, box.env())
    assert storm.harmless(told) and told["stops"] > 0, told
    print("# %s" % told)
