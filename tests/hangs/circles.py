#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for each other's locks, with and without something that ends it: circles.py [--build BUILD] [--list] [-j N] [NAME...]

A program is a circle (who holds what, and how it waits) and a company (what else there is). Some companies end the circle or the program after some
seconds, all by themselves; others never do. Whether a program ends is not believed but seen: it is looked at once, and then waited for. `certain` must
never be said of one that ends. Which of those that never end lose their `certain` is told, too."""
import argparse
import collections
import concurrent.futures
import glob
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
AFTER = 7           # seconds until whatever ends a circle does
SETTLES = 2         # until it has formed
PATIENCE = 30       # until one that should end counts as one that does not

HEAD = """
import asyncio, ctypes, faulthandler, os, queue, sched, signal, socket, subprocess, sys, threading, time
AFTER = %d
class Over(Exception): pass
def over(*_): raise Over
""" % AFTER

# NAME -> text; `take(lock)` waits for the lock. The circle closes after about half a second; `main()` is what the main thread does.
CIRCLES = {
    # the main thread and another one
    "main": """
a, b = threading.RLock(), threading.RLock()
def other():
    with a:
        time.sleep(.3)
        TAKE_b
def main():
    threading.Thread(target=other, daemon=True).start()
    with b:
        time.sleep(.3)
        TAKE_a
""",
    # two others; the main thread waits for one of them
    "joined": """
a, b = threading.RLock(), threading.RLock()
def one():
    with a:
        time.sleep(.3)
        TAKE_b
def two():
    with b:
        time.sleep(.3)
        TAKE_a
def main():
    t = [threading.Thread(target=f, daemon=True) for f in (one, two)]
    for x in t: x.start()
    t[0].join()
""",
    # three
    "three": """
l = [threading.RLock() for _ in range(3)]
a = b = l[0]
def ring(i):
    with l[i]:
        time.sleep(.3)
        b = l[(i + 1) % 3]
        TAKE_b
def main():
    for i in (1, 2): threading.Thread(target=ring, args=(i,), daemon=True).start()
    ring(0)
""",
    # two others, beside the main thread, which does not care
    "aside": """
a, b = threading.RLock(), threading.RLock()
def one():
    with a:
        time.sleep(.3)
        TAKE_b
def two():
    with b:
        time.sleep(.3)
        TAKE_a
def main():
    for f in (one, two): threading.Thread(target=f, daemon=True).start()
    ASIDE
""",
    # the locks of two conditions
    "conditions": """
a, b = threading.Condition(), threading.Condition()
def other():
    with a:
        time.sleep(.3)
        TAKE_b
def main():
    threading.Thread(target=other, daemon=True).start()
    with b:
        time.sleep(.3)
        TAKE_a
""",
}
WITH = "with %s: pass"
ACQUIRE = "%s.acquire()"
LIMIT = "%%s.acquire(timeout=%d)" % AFTER

# NAME -> (before main(), does it end, what the main thread does aside)
COMPANIES = {
    "nothing": ("", False, "threading.Event().wait()"),
    "idle_threads": ("""
q = queue.Queue()
for _ in range(3): threading.Thread(target=q.get, daemon=True).start()
""", False, "q.get()"),
    "ended_threads": ("""
for _ in range(5):
    t = threading.Thread(target=len, args=("",)); t.start(); t.join()
""", False, "threading.Lock().acquire() and threading.Event().wait()"),
    "fault_handler": ("faulthandler.enable()", False, "threading.Event().wait()"),
    "interrupt_handler": ("signal.signal(signal.SIGINT, over)", False, "threading.Event().wait()"),
    "child_handler_without_a_child": ("signal.signal(signal.SIGCHLD, lambda *_: None)", False, "threading.Event().wait()"),
    "idle_loop": ("""
def loop():
    async def forever(): await asyncio.Event().wait()
    asyncio.run(forever())
threading.Thread(target=loop, daemon=True).start()
""", False, "threading.Event().wait()"),
    "pool": ("""
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(2)
list(pool.map(len, ["", ""]))
""", False, "threading.Event().wait()"),
    "ignored_alarm": ("signal.signal(signal.SIGALRM, signal.SIG_IGN); signal.setitimer(signal.ITIMER_REAL, 1, 1)", False, "threading.Event().wait()"),
    # those that never end, but nothing tells so
    "heartbeat": ("""
def beat():
    while True: time.sleep(5)
threading.Thread(target=beat, daemon=True).start()
""", False, "threading.Event().wait()"),
    "term_handler": ("signal.signal(signal.SIGTERM, over)", False, "threading.Event().wait()"),
    "alarm_that_only_counts": ("""
n = []
signal.signal(signal.SIGALRM, lambda *_: n.append(1)); signal.setitimer(signal.ITIMER_REAL, 1, 1)
""", False, "threading.Event().wait()"),
    "server": ("""
s = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=s.accept, daemon=True).start()
""", False, "threading.Event().wait()"),
    "child": ("subprocess.Popen(['sleep', '600'])", False, "threading.Event().wait()"),
    # those that end
    "alarm": ("signal.signal(signal.SIGALRM, over); signal.alarm(AFTER)", True, "threading.Event().wait()"),
    "timer": ("signal.signal(signal.SIGALRM, over); signal.setitimer(signal.ITIMER_REAL, AFTER)", True, "threading.Event().wait()"),
    "kernel_timer": ("""
signal.signal(signal.SIGUSR1, over)
class Event(ctypes.Structure): _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_char * 48)]
libc, t = ctypes.CDLL("librt.so.1"), ctypes.c_void_p()
assert libc.timer_create(1, ctypes.byref(Event(None, signal.SIGUSR1, 0)), ctypes.byref(t)) == 0
assert libc.timer_settime(t, 0, (ctypes.c_long * 4)(0, 0, AFTER, 0), None) == 0
""", True, "threading.Event().wait()"),
    "kernel_timer_without_a_handler": ("""
class Event(ctypes.Structure): _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_char * 48)]
libc, t = ctypes.CDLL("librt.so.1"), ctypes.c_void_p()
assert libc.timer_create(1, ctypes.byref(Event(None, signal.SIGUSR1, 0)), ctypes.byref(t)) == 0
assert libc.timer_settime(t, 0, (ctypes.c_long * 4)(0, 0, AFTER, 0), None) == 0
""", True, "threading.Event().wait()"),
    "kernel_timer_that_calls": ("""
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("call", ctypes.c_void_p), ("pad", ctypes.c_char * 40)]
libc, t = ctypes.CDLL("librt.so.1"), ctypes.c_void_p()
call = ctypes.cast(ctypes.CDLL(None)._exit, ctypes.c_void_p).value
assert libc.timer_create(1, ctypes.byref(Event(3, 0, 2, call)), ctypes.byref(t)) == 0
assert libc.timer_settime(t, 0, (ctypes.c_long * 4)(0, 0, AFTER, 0), None) == 0
""", True, "threading.Event().wait()"),
    "queued_timer": ("""
signal.signal(40, over)
class Event(ctypes.Structure): _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_char * 48)]
libc, t = ctypes.CDLL("librt.so.1"), ctypes.c_void_p()
assert libc.timer_create(1, ctypes.byref(Event(None, 40, 0)), ctypes.byref(t)) == 0
assert libc.timer_settime(t, 0, (ctypes.c_long * 4)(0, 0, AFTER, 0), None) == 0
""", True, "threading.Event().wait()"),
    "thread_that_sends": ("""
signal.signal(signal.SIGUSR1, over)
threading.Timer(AFTER, os.kill, (os.getpid(), signal.SIGUSR1)).start()
""", True, "threading.Event().wait()"),
    "thread_that_interrupts": ("""
main_thread = threading.main_thread().ident
signal.signal(signal.SIGINT, signal.default_int_handler)      # a shell may have had it ignored
threading.Timer(AFTER, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
""", True, "threading.Event().wait()"),
    "child_that_sends": ("""
signal.signal(signal.SIGUSR2, over)
subprocess.Popen(["sh", "-c", "sleep %d; kill -USR2 $PPID" % AFTER])
""", True, "threading.Event().wait()"),
    "child_that_interrupts": ("""
signal.signal(signal.SIGINT, signal.default_int_handler)
subprocess.Popen(["sh", "-c", "sleep %d; kill -INT $PPID" % AFTER])
""", True, "threading.Event().wait()"),
    "child_that_ends": ("""
signal.signal(signal.SIGCHLD, over)
subprocess.Popen(["sleep", str(AFTER)])
""", True, "threading.Event().wait()"),
    "child_that_writes": ("""
signal.signal(signal.SIGUSR1, over)
p = subprocess.Popen(["sh", "-c", "sleep %d; echo" % AFTER], stdout=subprocess.PIPE)
def listen():
    p.stdout.readline(); os.kill(os.getpid(), signal.SIGUSR1)
threading.Thread(target=listen, daemon=True).start()
""", True, "threading.Event().wait()"),
    "client_that_connects": ("""
s = socket.create_server(("127.0.0.1", 0))
subprocess.Popen([sys.executable, "-c", "import socket, time; time.sleep(%d); socket.create_connection(('127.0.0.1', %d))" % (AFTER, s.getsockname()[1])])
def serve():
    s.accept(); os._exit(3)
threading.Thread(target=serve, daemon=True).start()
""", True, "threading.Event().wait()"),
    "watchdog": ("threading.Timer(AFTER, os._exit, (3,)).start()", True, "threading.Event().wait()"),
    "fault_watchdog": ("faulthandler.dump_traceback_later(AFTER, exit=True)", True, "threading.Event().wait()"),
    "queue_watchdog": ("""
q = queue.Queue()
def watch():
    try: q.get(timeout=AFTER)
    except queue.Empty: os._exit(3)
threading.Thread(target=watch, daemon=True).start()
""", True, "threading.Event().wait()"),
    "condition_watchdog": ("""
c = threading.Condition()
def watch():
    with c: c.wait(AFTER)
    os._exit(3)
threading.Thread(target=watch, daemon=True).start()
""", True, "threading.Event().wait()"),
    "loop_watchdog": ("""
def loop():
    async def forever():
        asyncio.get_running_loop().call_later(AFTER, os._exit, 3)
        await asyncio.Event().wait()
    asyncio.run(forever())
threading.Thread(target=loop, daemon=True).start()
""", True, "threading.Event().wait()"),
    "sched_watchdog": ("""
s = sched.scheduler()
s.enter(AFTER, 1, os._exit, (3,))
threading.Thread(target=s.run, daemon=True).start()
""", True, "threading.Event().wait()"),
    "socket_watchdog": ("""
import struct
near, far = socket.socketpair()
near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", AFTER, 0))
def watch():
    ctypes.CDLL(None).recv(near.fileno(), ctypes.create_string_buffer(8), 8, 0)
    os._exit(3)
threading.Thread(target=watch, daemon=True).start()
""", True, "threading.Event().wait()"),
    "clock_watchdog": ("""
def watch():
    end = time.monotonic() + AFTER
    while time.monotonic() < end: pass
    os._exit(3)
threading.Thread(target=watch, daemon=True).start()
""", True, "threading.Event().wait()"),
    "waiter_for_a_signal": ("""
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
def watch():
    signal.sigwait({signal.SIGALRM}); os._exit(3)
threading.Thread(target=watch, daemon=True).start()
signal.alarm(AFTER)
""", True, "threading.Event().wait()"),
}
# What ends only because the main thread is not part of it.
ASIDE = {
    "sleeps": ("time.sleep(AFTER)", True),
    "works": ("end = time.monotonic() + AFTER\n    n = 0\n    while time.monotonic() < end: n += 1", True),
    "waits_a_while": ("threading.Event().wait(AFTER)", True),
    "waits_for_a_child": ("subprocess.run(['sleep', str(AFTER)])", True),
    "polls": ("while time.monotonic() < START + AFTER: time.sleep(.01)", True),
    "runs_a_loop": ("asyncio.run(asyncio.sleep(AFTER))", True),
    "waits_for_an_item": ("queue.Queue().get()", False),
}
TAIL = """
START = time.monotonic()
try: main()
except (Over, KeyboardInterrupt): pass
os._exit(0)
"""


def text_of(circle, company, way=WITH, aside=None):
    before, _, default = COMPANIES[company]
    body = CIRCLES[circle].replace("TAKE_a", way % "a").replace("TAKE_b", WITH % "b").replace("ASIDE", aside or default)
    return HEAD + body + before.strip() + TAIL


def programs():
    """Each with a Python in turn."""
    versions = itertools.cycle(["3.9", "3.10", "3.11", "3.12", "3.13"])
    circles = itertools.cycle(["main", "three", "joined", "conditions"])
    for company, (_, ends, _) in COMPANIES.items():
        for _ in range(2):
            circle = next(circles)
            yield {"name": "%s-%s" % (circle, company), "python": next(versions), "ends": ends, "text": text_of(circle, company, ACQUIRE if circle == "main" else WITH)}
    for aside, (text, ends) in ASIDE.items():
        yield {"name": "aside-%s" % aside, "python": next(versions), "ends": ends, "text": text_of("aside", "nothing", aside=text)}
    for circle in ("main", "joined", "three", "conditions"):
        yield {"name": "%s-limit" % circle, "python": next(versions), "ends": True, "text": text_of(circle, "nothing", LIMIT if circle != "three" else WITH).replace(
            "        with b: pass\n" if circle == "three" else "\0", "        b.acquire(timeout=AFTER)\n")}


def find_python(version):
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % version)))
    return found[-1] if found else None


def look(build, program, python):
    """(what was said, did it end)"""
    with tempfile.TemporaryDirectory(prefix="cuwhy-circles-") as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(program["text"])
        process = subprocess.Popen([python, path], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            time.sleep(SETTLES)
            run = subprocess.run([os.path.join(build, "cuwhy"), "explain", "--json", "--pid", str(process.pid)], capture_output=True, text=True)
            try:
                process.wait(PATIENCE if program["ends"] else AFTER + 2)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            _, error = process.communicate()
    return json.loads(run.stdout), ended, error


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", help="only programs whose name contains one of these")
    parser.add_argument("-j", type=int, default=6, help="so many at a time: they mostly sleep")
    given = parser.parse_args()
    counts, bad = collections.Counter(), 0
    chosen = [p for p in programs() if find_python(p["python"]) and (not given.names or any(n in p["name"] for n in given.names))]
    if given.list:
        for program in chosen:
            print("%-32s %-5s %s" % (program["name"], program["python"], "ends" if program["ends"] else "never ends"))
        return 0
    with concurrent.futures.ThreadPoolExecutor(given.j) as pool:
        results = list(pool.map(lambda p: look(os.path.abspath(given.build), p, find_python(p["python"])), chosen))
    for program, (told, ended, error) in zip(chosen, results):
        sure = told.get("certainty") or told.get("cause") or "?"
        sure = "not hung" if told.get("cause") == "none" else sure
        wrong = ended != program["ends"]
        alarm = ended and sure == "certain"
        bad += wrong or alarm
        counts["ends" if ended else "never ends", told.get("cause"), sure] += 1
        print("%-8s %-32s %-5s %-10s %-14s %-9s %s" % ("ALARM" if alarm else "LABEL" if wrong else "ok", program["name"], program["python"],
                                                 "ends" if ended else "never ends", told.get("cause"), sure, told.get("because") or error[-200:]), flush=True)
    for (truth, cause, sure), n in sorted(counts.items(), key=str):
        print("%s: %s %s: %d" % (truth, cause, sure, n))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
