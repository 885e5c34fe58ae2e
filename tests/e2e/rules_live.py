# SPDX-License-Identifier: Apache-2.0
"""`cuwhy explain --pid`: programs that hang are told what they wait for and where, in every Python here; those that work are told apart and
left unharmed."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import json_page  # noqa: E402
from rules_recorder import find_pythons
from toolbox import HERE, PATIENCE, Skip, alone, each, same, wait_until

READY = "import sys; print('ready', flush=True)\n"

# Name -> program; its second line says the cause and what it waits for. The line that must be named ends with "# <- here".
HUNG = {
    "queue_join": READY + """# cause: hang-lock waits: queue-done
import queue
items = queue.Queue()
items.put(1)
items.join()  # <- here
""",
    "queue_put": READY + """# cause: hang-lock waits: queue-room
import queue
items = queue.Queue(1)
items.put(1)
items.put(2)  # <- here
""",
    "flock_of_itself": READY + """# cause: hang-input-output waits: file-lock
import fcntl
first, second = open(sys.argv[0] + ".lock", "w"), open(sys.argv[0] + ".lock", "w")
fcntl.flock(first, fcntl.LOCK_EX)
fcntl.flock(second, fcntl.LOCK_EX)  # <- here
""",
    "flock_of_itself_in_a_thread": READY + """# cause: hang-lock waits: thread
import fcntl, threading
first, second = open(sys.argv[0] + ".lock", "w"), open(sys.argv[0] + ".lock", "w")
fcntl.flock(first, fcntl.LOCK_EX)
t = threading.Thread(target=fcntl.flock, args=(second, fcntl.LOCK_EX), daemon=True)
t.start()
t.join()  # <- here
""",
    "lock_of_an_open_file": READY + """# cause: hang-input-output waits: file-lock
import fcntl, struct
first, second = open(sys.argv[0] + ".lock", "w"), open(sys.argv[0] + ".lock", "w")
ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
fcntl.fcntl(first, 37, ask)     # F_OFD_SETLK: the kernel does not say whose it is
fcntl.fcntl(second, 38, ask)  # <- here
""",
    "loop_on_an_attribute": READY + """# cause: hang-loop waits: loop
import queue, threading
class State:
    def __init__(self):
        self.done, self.n = False, 0
class Worker(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.state, self.items = State(), queue.Queue()
    def run(self):
        while True:
            self.items.get()
            self.state.n += 1
worker = Worker()
worker.start()
while not worker.state.done:  # <- here
    pass
""",
    "loop_on_a_length": READY + """# cause: hang-loop waits: loop
import threading
def wait(items, stop):
    while len(items) < 3 and not stop.is_set():  # <- here
        pass
wait([], threading.Event())
""",
    "lock": READY + """# cause: hang-lock waits: lock
import threading
lock = threading.Lock()
def work():
    lock.acquire()
    lock.acquire()  # <- here
work()
""",
    "deadlock_rlock": READY + """# cause: hang-deadlock waits: lock
import threading
a, b, met = threading.RLock(), threading.RLock(), threading.Barrier(2)
def one():
    with a:
        met.wait()
        b.acquire()
def two():
    with b:
        met.wait()
        with a:  # <- here
            pass
threading.Thread(target=one, name="other", daemon=True).start()
two()
""",
    "deadlock_lock": READY + """# cause: hang-deadlock waits: lock
import threading
a, b, met = threading.Lock(), threading.Lock(), threading.Barrier(2)
def one():
    with a:
        met.wait()
        with b:
            pass
def two():
    with b:
        met.wait()
        with a:  # <- here
            pass
threading.Thread(target=one, daemon=True).start()
two()
""",
    "queue": READY + """# cause: hang-lock waits: queue
import queue
q = queue.Queue()
def consume():
    return q.get()  # <- here
consume()
""",
    "thread": READY + """# cause: hang-lock waits: thread
import threading
done = threading.Event()
def work():
    done.wait()
t = threading.Thread(target=work, daemon=True)
t.start()
t.join()  # <- here
""",
    "event": READY + """# cause: hang-lock waits: condition
import threading
done = threading.Event()
done.wait()  # <- here
""",
    "loader": READY + """# cause: hang-other-process waits: worker
import multiprocessing, time
def worker(connection):
    time.sleep(1000)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=worker, args=(theirs,), daemon=True)
    child.start()
    batch = ours.recv()  # <- here
""",
    "loader_dead": READY + """# cause: hang-other-process waits: worker
import multiprocessing, os
def worker(q):
    os._exit(9)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    q = multiprocessing.Queue()
    child = multiprocessing.Process(target=worker, args=(q,), daemon=True)
    child.start()
    batch = q.get()  # <- here
""",
    "socket": READY + """# cause: hang-peer waits: socket
import socket
a, b = socket.socketpair()
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
client = socket.create_connection(server.getsockname())
client.recv(10)  # <- here
""",
    "accept": READY + """# cause: hang-peer waits: accept
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
def rendezvous():
    return server.accept()  # <- here
rendezvous()
""",
    "loop": READY + """# cause: hang-loop waits: loop
flag = []
def wait_for_flag():
    waited = 0
    while not flag: waited = 1  # <- here
wait_for_flag()
""",
    "loop_of_module": READY + """# cause: hang-loop waits: loop
flag = False
while not flag: pass  # <- here
""",
    "sleep": READY + """# cause: hang-sleep waits: sleep
import time
def pause():
    while True:
        time.sleep(1000)  # <- here
pause()
""",
    "subprocess": READY + """# cause: hang-other-process waits: process
import subprocess
child = subprocess.Popen(["sleep", "1000"])
child.wait()  # <- here
""",
    "flock": READY + """# cause: hang-input-output waits: file-lock
import fcntl, os
path = sys.argv[0] + ".lock"
first, second = open(path, "w"), open(path, "w")
if os.fork() == 0:
    fcntl.flock(first, fcntl.LOCK_EX)
    os.write(3 if False else 1, b"")
    import time
    time.sleep(1000)
import time
time.sleep(0.3)
fcntl.flock(second, fcntl.LOCK_EX)  # <- here
""",
    "pipe": READY + """# cause: hang-input-output waits: pipe
import os
reader, writer = os.pipe()
def fetch():
    return os.read(reader, 1)  # <- here
fetch()
""",
    "native": READY + """# cause: hang-loop waits: native
import ctypes
spin = ctypes.PyDLL(sys.argv[1]).spin
def compute():
    spin()  # <- here
compute()
""",
    "terminal": READY + """# cause: hang-input-output waits: terminal
import os, pty
ours, theirs = pty.openpty()
def ask():
    return os.read(theirs, 1)  # <- here
ask()
""",
    "server": READY + """# cause: hang-peer waits: event
import asyncio
async def serve():
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    await server.serve_forever()
def main():
    asyncio.run(serve())  # <- here
main()
""",
    "stopped": READY + """# cause: hang-stopped waits: stopped
import os, signal
def stop():
    os.kill(os.getpid(), signal.SIGSTOP)  # <- here
stop()
""",
    "cuda": READY + """# cause: kernel-hang waits: cuda
import cudrv, ctypes
cudrv.init()
hang = cudrv.kernel("hang")
cudrv.launch(hang, (2,), (64,), ctypes.c_uint64(0))
def wait_for_gpu():
    cudrv.synchronize()  # <- here
wait_for_gpu()
""",
}


def here(text):
    return [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# <- here")][0]


def session(leader):
    """(state, page faults, seconds of processor) of every process of the session."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as stream:
                words = stream.read().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if int(words[3]) == leader:
            found[name] = (words[0], int(words[7]) + int(words[9]), (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"))
    return found


def settle(leader):
    """Waits until its processes got where they stay: whoever still imports modules has page faults. One that waits has had none for half a second; one
    that computes, for a fifth of a second of processor time, however long that takes. A program that moves on is not waited for longer than half a minute."""
    end, last, since, used = time.monotonic() + 30, None, 0, 0
    while time.monotonic() < end:
        now = session(leader)
        faults, spent = {k: v[1] for k, v in now.items()}, sum(v[2] for v in now.values())
        if faults != last:
            last, since, used = faults, time.monotonic(), spent
        if spent - used >= 0.2 or (time.monotonic() - since >= 0.5 and all(v[0] in "STZt" for v in now.values())):
            return
        time.sleep(0.05)


@contextlib.contextmanager
def running(box, text, python=None, **env):
    """The program, once it has said that it is ready; all of its processes end with the block."""
    argv = box.script(text) + [box.library("spin")]
    if python:
        argv[0] = python
    environment = box.env(LD_LIBRARY_PATH=box.sim, CUWHY_SIM="tiny", PYTHONPATH=os.path.join(HERE, "site-packages"), **env)
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        same(process.stdout.readline(), "ready\n", "said")
        settle(process.pid)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def look(box, pid, *options):
    run = subprocess.run([box.cuwhy, "explain", "--json", "--pid", str(pid), *options], capture_output=True, text=True,
                         env=box.env(), timeout=PATIENCE)
    return run.returncode, json.loads(run.stdout)


def check(box, name, python=None, label="", *options):
    text = HUNG[name]
    cause, waits = re.search(r"^# cause: (\S+) waits: (\S+)$", text, re.M).groups()
    with running(box, text, python) as process:
        status, told = look(box, process.pid, *options)
        assert process.poll() is None, "%s%s: it ended: %s" % (name, label, process.stderr.read())
    thread = [t for t in told["live"]["threads"] if t["tid"] == told["live"]["thread"]] if "live" in told else []
    same((status, told.get("cause"), thread and thread[0]["waits"]), (1, cause, waits), name + label + ": cause")
    same((told["where"]["line"], os.path.basename(told["where"]["file"])), (here(text), "program.py"), name + label + ": line")
    return told


# Those of HUNG that sleep, or wait for what does, or for a peer that may just have nothing to say.
MAY_END = {"accept", "cuda", "flock", "loader", "native", "server", "sleep", "socket", "subprocess"}


@each(sorted(HUNG))
def rule__hung_programs_are_told_what_they_wait_for_and_where(box, name):
    told = check(box, name)
    if name not in MAY_END:
        assert told["certainty"] in ("likely", "certain"), (told["certainty"], told["because"])


@each(sorted(set(HUNG) - {"native"}))
def rule__without_stopping_anything_the_same_is_told(box, name):
    check(box, name, None, "", "--no-stop")


def in_every_python(names):
    """Tests for `each`: "name__3.9"; "name__" if that of the tests is none of them."""
    def tests():
        versions = sorted(find_pythons())
        versions += [] if "%d.%d" % sys.version_info[:2] in versions else [""]
        return ["%s__%s" % (name, version) for version in versions for name in sorted(names)]
    return tests


def of_every_python(test):
    """(name, version, its interpreter) of such a test"""
    name, _, version = test.rpartition("__")
    return name, version, find_pythons().get(version)


def where_known():
    """Since 3.14, who has an RLock cannot be read: it waits in a queue of CPython's own."""
    return [test for test in in_every_python(("lock", "deadlock_rlock", "queue", "loop", "loop_of_module", "sleep", "native", "socket"))()
            if test != "deadlock_rlock__3.14"]


@each(where_known)
def rule__hung_programs_of_every_python_here_are_told_where(box, test):
    name, version, python = of_every_python(test)
    check(box, name, python, " in " + version)


# Programs that work: nothing is wrong with them, however busy or idle they look.
WORKS = {
    "counts": READY + """
def count():
    n = 0
    while True:
        n += 1
count()
""",
    "counts_in_the_module": READY + """
n = 0
while True:
    n += 1
""",
    "steps_that_wait": READY + """
import time
class Trainer:
    step = 0
def train(trainer):
    while True:
        time.sleep(0.02)
        trainer.step += 1
train(Trainer())
""",
    "recursion": READY + """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(60)
""",
    "a_worker_thread": READY + """
import queue, threading
q = queue.Queue()
def work():
    n = 0
    while True:
        n += 1
threading.Thread(target=work, daemon=True).start()
q.get()
""",
    "a_child_that_works": READY + """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
child.wait()
""",
    "a_child_that_gets_no_processor": READY + """
import os, subprocess
one = "import os; os.sched_setaffinity(0, {%d})\\n" % min(os.sched_getaffinity(0))
last = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\\n"
other = subprocess.Popen([sys.executable, "-c", one + "while True: pass"])
child = subprocess.Popen([sys.executable, "-c", one + last + "while True: pass"])
child.wait()
""",
    "workers_of_a_pool": READY + """
import multiprocessing
def work(n):
    while True:
        n += 1
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    with multiprocessing.Pool(1) as pool:
        pool.map(work, [1])
""",
    "workers_of_an_executor": READY + """
import concurrent.futures
def work(n):
    while True:
        n += 1
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        list(pool.map(work, [1]))
""",
    "a_lock_of_processes": READY + """
import multiprocessing, time
def work(lock, n):
    with lock:
        while True:
            n += 1
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    lock = multiprocessing.Lock()
    multiprocessing.Process(target=work, args=(lock, 1), daemon=True).start()
    time.sleep(0.2)
    lock.acquire()
""",
    "a_child_of_a_child": READY + """
import subprocess
subprocess.run(["sh", "-c", "sh -c 'while :; do :; done'; true"])
""",
    "a_slow_download": READY + """
import os, socket, time
ours, theirs = socket.socketpair()
if os.fork() == 0:
    while True:
        theirs.send(b"x")
        time.sleep(0.05)
def fetch():
    while True:
        ours.recv(4096)
fetch()
""",
    "the_other_end_of_a_local_socket": READY + """
import os, socket
ours, theirs = socket.socketpair()
if os.fork() == 0:
    if os.fork():
        os._exit(0)     # the other one is nobody's child now
    ours.close()
    n = 0
    while True:
        n += 1
theirs.close()
os.wait()
ours.recv(1)
""",
    "the_other_end_of_a_connection": READY + """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(server.getsockname())
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    theirs = server.accept()
    ours.close()
    n = 0
    while True:
        n += 1
server.close()
os.wait()
ours.recv(1)
""",
    "a_thread_at_the_other_end_of_a_pipe": READY + """
import os, threading
reader, writer = os.pipe()
def work():
    n = 0
    while True:
        n += 1
threading.Thread(target=work, daemon=True).start()
os.read(reader, 1)
""",
    "a_thread_at_the_other_end_of_a_local_socket": READY + """
import socket, threading
ours, theirs = socket.socketpair()
def work():
    n = 0
    while True:
        n += 1
threading.Thread(target=work, daemon=True).start()
ours.recv(1)
""",
    "a_thread_of_an_event_loop": READY + """
import asyncio
def work():
    n = 0
    while True:
        n += 1
async def main():
    await asyncio.get_running_loop().run_in_executor(None, work)
asyncio.run(main())
""",
    "numbers_of_an_array": READY + """
import array
numbers = array.array("d", [0.0] * 8)
def work():
    while True:
        numbers[0] += 1.0
work()
""",
    "counts_at_the_end_of_a_list": READY + """
kept = [0] * 1000
def fill():
    for i in iter(int, 1):
        kept[-1] += 1
fill()
""",
    "fills_a_list": READY + """
kept = [0]
def fill():
    for i in iter(int, 1):
        kept.append(kept[-1] + 1)
        del kept[:-5]
fill()
""",
}


@each(in_every_python(WORKS))
def rule__programs_that_work_are_not_called_hung(box, test):
    name, version, python = of_every_python(test)
    for options in ((), ("--no-stop",)) if version in ("", "3.11") else ((),):
        with running(box, WORKS[name], python) as process:
            status, told = look(box, process.pid, *options)
        same((status, told["cause"], told["live"]["hung"]), (0, "none", False), "%s: %s" % (options, told["title"]))


# Programs of which nobody can say after a second whether they are hung: that is what must be said. A call from Python's library is watched until
# it had a fifth of a second of a processor, but no longer than 0.6 s: on a busy machine it cannot be told from a loop ("native|loop").
UNSURE = {
    "a_thread_computes": (READY + """
import hashlib, threading
t = threading.Thread(target=lambda: hashlib.pbkdf2_hmac("sha256", b"p", b"s", 2000000000))
t.start()
t.join()
""", "hang-loop", "native"),
    "a_builtin_computes": (READY + """
sum(range(10 ** 13))
""", "hang-loop", "native"),
    "an_expression_is_matched": (READY + """
import re
re.match("(a+)+$", "a" * 60 + "b")
""", "hang-loop", "native|loop"),
    "a_loop_that_writes": (READY + """
import os
out = os.open("/dev/null", os.O_WRONLY)
def copy():
    while True:
        os.write(out, b"a line")
        abs(out), abs(out), abs(out), abs(out), abs(out), abs(out), abs(out), abs(out)      # so that it is elsewhere most of the time
        abs(out), abs(out), abs(out), abs(out), abs(out), abs(out), abs(out), abs(out)
copy()
""", "hang-loop", "loop"),
    "a_function_of_the_library_gets_on": (READY + """
import difflib
one, two = "ab" * 50000, "ba" * 50000
difflib.SequenceMatcher(None, one, two, autojunk=False).ratio()
""", "hang-loop", "loop"),
    "a_server": (READY + """
import http.server
http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler).serve_forever()
""", "hang-peer", "accept"),
    "a_server_of_threads": (READY + """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        server.accept()
threading.Thread(target=serve, daemon=True).start()
threading.Event().wait()
""", "hang-lock", "condition"),
    "a_lock_of_processes_whose_holder_is_gone": (READY + """
import multiprocessing, os
lock = multiprocessing.get_context("fork").Lock()
if os.fork() == 0:
    lock.acquire()
    os._exit(1)
os.wait()
lock.acquire()
""", "hang-lock", "lock"),
    # something will go on by itself, and may do what is waited for
    "a_feeder_that_sleeps": (READY + """
import queue, threading, time
q = queue.Queue()
def feed():
    while True:
        time.sleep(300)  # <- wakes
        q.put(1)
threading.Thread(target=feed, daemon=True).start()
while True:
    q.get()
""", "hang-lock", "queue"),
    "a_timer": (READY + """
import threading
done = threading.Event()
threading.Timer(300, done.set).start()
done.wait()
""", "hang-lock", "condition"),
    "a_thread_that_only_sleeps": (READY + """
import threading, time
t = threading.Thread(target=time.sleep, args=(300,))
t.start()
t.join()
""", "hang-lock", "thread"),
    "a_thread_that_polls": (READY + """
import os, select, threading
done, (reader, _) = threading.Event(), os.pipe()
def watch():
    while not select.select([reader], [], [], 300)[0]:  # <- wakes
        done.set()
threading.Thread(target=watch, daemon=True).start()
done.wait()
""", "hang-lock", "condition"),
    "a_lock_that_is_free_after_a_while": (READY + """
import threading, time
lock = threading.Lock()
def work():
    lock.acquire()
    time.sleep(300)  # <- wakes
    lock.release()
t = threading.Thread(target=work, daemon=True)
t.start()
time.sleep(0.2)
lock.acquire()
""", "hang-lock", "lock"),
    "a_wait_with_a_time_limit": (READY + """
import queue
q = queue.Queue()
while True:
    try:
        q.get(timeout=300)  # <- wakes
    except queue.Empty:
        pass
""", "hang-lock", "queue"),
    "a_pipe_of_a_thread_that_sleeps": (READY + """
import os, threading, time
reader, writer = os.pipe()
def feed():
    time.sleep(300)  # <- wakes
    os.write(writer, b"x")
threading.Thread(target=feed, daemon=True).start()
os.read(reader, 1)
""", "hang-input-output", "pipe"),
    "a_thread_that_waits_for_the_gpu": (READY + """
import cudrv, ctypes, threading
context = cudrv.init()
cudrv.launch(cudrv.kernel("hang"), (2,), (64,), ctypes.c_uint64(0))
def step():
    cudrv.cuda.cuCtxSetCurrent(context)
    cudrv.synchronize()
t = threading.Thread(target=step, daemon=True)
t.start()
t.join()
""", "hang-lock", "thread"),
    "a_loop_until_a_deadline": (READY + """
import time
end = time.monotonic() + 1000
while time.monotonic() < end: pass
""", "hang-loop", "loop"),
    "a_loop_that_draws": (READY + """
import random
def draw():
    while random.random() > 1e-15: pass
draw()
""", "hang-loop", "loop"),
    "a_loop_over_an_iterator": (READY + """
import itertools
def count():
    for _ in itertools.repeat(None, 10 ** 15): pass
count()
""", "hang-loop", "loop"),
    "a_daemon_of_a_named_pipe": (READY + """
import os
os.mkfifo(sys.argv[0] + ".daemon")
open(sys.argv[0] + ".daemon").read()
""", "hang-input-output", "pipe"),
    "a_daemon_that_keeps_its_named_pipe_open": (READY + """
import os
os.mkfifo(sys.argv[0] + ".both")
os.read(os.open(sys.argv[0] + ".both", os.O_RDWR), 1)
""", "hang-input-output", "pipe"),
    "a_thread_that_waits_for_a_signal": (READY + """
import signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
t = threading.Thread(target=lambda: signal.sigwait({signal.SIGUSR1}))  # <- wakes
t.start()
t.join()
""", "hang-lock", "thread"),
    "a_program_that_waits_for_a_signal": (READY + """
import signal
signal.pause()
""", "hang-sleep", "signal"),
    "a_terminal_of_a_quiet_program": (READY + """
import os, pty
outer, inner = pty.openpty()
os.read(outer, 1)
""", "hang-input-output", "device"),
    "a_udp_server": (READY + """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.recv(1)
""", "hang-peer", "socket"),
    "a_native_thread_that_calls_back": (READY + """
import ctypes, threading
done = threading.Event()
call = ctypes.CFUNCTYPE(None)(done.set)
ctypes.CDLL(sys.argv[1]).call_later(call, 1000)
done.wait()
""", "hang-lock", "condition"),
    "a_thread_that_waits_for_the_lock_of_a_file": (READY + """
import fcntl, os, signal, threading
path = sys.argv[0] + ".lock"
if os.fork() == 0:
    taken = open(path, "w")
    fcntl.flock(taken, fcntl.LOCK_EX)
    open(path + ".taken", "w").close()
    signal.pause()
while not os.path.exists(path + ".taken"): pass
second = open(path, "w")
t = threading.Thread(target=fcntl.flock, args=(second, fcntl.LOCK_EX), daemon=True)
t.start()
t.join()
""", "hang-lock", "thread"),
    "a_named_pipe_whose_writer_sleeps": (READY + """
import os, subprocess
os.mkfifo(sys.argv[0] + ".fifo")
subprocess.Popen(["sh", "-c", "sleep 1000 > " + sys.argv[0] + ".fifo"])
open(sys.argv[0] + ".fifo").read()
""", "hang-input-output", "pipe"),
    "a_loop_until_a_thread_wakes": (READY + """
import threading, time
done = []
def work():
    time.sleep(300)  # <- wakes
    done.append(1)
threading.Thread(target=work, daemon=True).start()
while not done: pass
""", "hang-loop", "loop"),
    "a_loop_until_a_signal": (READY + """
import signal
done = []
signal.signal(signal.SIGUSR1, lambda *of: done.append(1))
while not done: pass
""", "hang-loop", "loop"),
    "a_child_that_sleeps": (HUNG["subprocess"], "hang-other-process", "process"),
    "a_child_of_a_child_that_sleeps": (READY + """
import subprocess
subprocess.run(["sh", "-c", "sleep 1000; true"], stdout=subprocess.PIPE)
""", "hang-other-process", "process"),
    "a_worker_that_sleeps": (HUNG["loader"], "hang-other-process", "worker"),
    "a_holder_of_a_file_that_sleeps": (HUNG["flock"], "hang-input-output", "file-lock"),
    "a_child_that_is_a_server": (READY + """
import subprocess
server = "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"
subprocess.Popen([sys.executable, "-c", server]).wait()
""", "hang-other-process", "process"),
    "an_idle_client": (HUNG["socket"], "hang-peer", "socket"),
    "an_event_of_a_signal": (READY + """
import signal, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *of: stop.set())
stop.wait()
""", "hang-lock", "condition"),
    "a_task_that_waits_for_a_signal": (READY + """
import asyncio, signal
async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
asyncio.run(main())
""", "hang-lock", "tasks"),
}


@each(sorted(UNSURE))
def rule__what_a_second_cannot_tell_is_only_possible(box, name):
    text, cause, waits = UNSURE[name]
    with running(box, text) as process:
        status, told = look(box, process.pid)
    thread = [t["waits"] for t in told["live"]["threads"] if t["tid"] == told["live"]["thread"]]
    same((status, told["cause"], told.get("certainty")), (1, cause, "possible"), told["title"])
    assert len(thread) == 1 and thread[0] in waits.split("|"), (thread, told["title"])
    wakes = [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# <- wakes")]
    assert not wakes or "program.py:%d" % wakes[0] in told["because"], told["because"]


def rule__a_loop_beside_a_thread_that_works_is_at_most_possible(box):
    """Which of the two has the GIL at the last look decides what is seen of the other."""
    with running(box, READY + """
import threading
done = []
def work():
    n = 0
    while True:
        n += 1
threading.Thread(target=work, daemon=True).start()
while not done: pass
""") as process:
        _, told = look(box, process.pid)
    assert told["cause"] == "none" or told["certainty"] == "possible", told["title"]


# Native code that calls back, and loops that call functions: what is met on the stack is often the caller alone.
CALLS_BACK = {
    "deque_of_map": """
import collections, itertools
def f(x): return None
def run():
    collections.deque(map(f, itertools.repeat(0, 10 ** 15)), maxlen=0)
run()
""",
    "deque_of_iter": """
import collections
def f(): return 0
def run():
    collections.deque(iter(f, 1), maxlen=0)
run()
""",
    "property": """
import time
class Timer:
    def __init__(self):
        self.end = time.monotonic() + 1000
    @property
    def over(self):
        return time.monotonic() > self.end
def wait(timer):
    while not timer.over:
        pass
wait(Timer())
""",
    "warm_up": """
import time
def f(x): return x * x
def warm(seconds):
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        f(3.0)
warm(1000)
""",
}


@each(in_every_python(CALLS_BACK))
def rule__calls_that_may_return_are_at_most_possible(box, test):
    name, _, python = of_every_python(test)
    with running(box, READY + CALLS_BACK[name], python) as process:
        _, told = look(box, process.pid)
    assert told["cause"] == "none" or told["certainty"] == "possible", told["because"]


def rule__a_socket_for_datagrams_is_no_local_one(box):
    with running(box, UNSURE["a_udp_server"][0]) as process:
        _, told = look(box, process.pid)
    assert "a UDP socket at 127.0.0.1:" in told["live"]["threads"][0]["what"], told["live"]["threads"][0]["what"]


# Programs that are hung, beside threads and processes that wake up now and then but never touch what is waited for.
HELPED = {
    "a_monitor_of_tqdm": """
import queue, threading
from tqdm._monitor import TMonitor
TMonitor().start()
queue.Queue().get()  # <- here
""",
    "a_thread_of_torch": """
import queue, threading
from torch.utils.data import _pin
threading.Thread(target=_pin.loop, daemon=True).start()
queue.Queue().get()  # <- here
""",
    "workers_that_are_idle": """
import multiprocessing, threading
from torch.utils.data import _pin
def stuck():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    fork.Process(target=_pin.loop, daemon=True).start()
    child = fork.Process(target=stuck, daemon=True)
    child.start()
    child.join()  # <- here
""",
    "a_manager": """
import multiprocessing
if __name__ == "__main__":
    manager = multiprocessing.get_context("fork").Manager()
    manager.Queue().get()  # <- here
""",
    "a_sharer_of_descriptors": """
import queue
from multiprocessing import resource_sharer
resource_sharer.DupFd(1)
queue.Queue().get()  # <- here
""",
    "a_time_limit_of_torch": """
from torch.utils.data import _pin
_pin.loop()  # <- here
""",
    "an_interrupt_and_a_child": """
import signal, threading
signal.signal(signal.SIGINT, lambda *of: None)
signal.signal(signal.SIGCHLD, lambda *of: None)
threading.Event().wait()  # <- here
""",
}
PACKAGES = {
    "tqdm/_monitor.py": """
import threading
class TMonitor(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.was_killed = threading.Event()
    def run(self):
        while not self.was_killed.wait(10):
            pass
""",
    "torch/utils/data/_pin.py": """
import queue
def loop():
    items = queue.Queue()
    while True:
        try:
            items.get(timeout=5)
        except queue.Empty:
            pass
""",
}


@each(sorted(HELPED))
def rule__helpers_of_libraries_do_not_make_a_hang_less_likely(box, name):
    packages = os.path.join(box.scratch, "site-packages")
    for module, text in PACKAGES.items():
        path = os.path.join(packages, module)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    text = READY + "sys.path.insert(0, %r)\n" % packages + HELPED[name]
    with running(box, text) as process:
        status, told = look(box, process.pid)
    same((status, told.get("certainty"), (told.get("where") or {}).get("line")), (1, "likely", here(text)), "%s, %s" % (told["title"], told["cause"]))


def rule__tasks_that_wait_for_each_other_are_no_peer(box):
    with running(box, READY + """
import asyncio
async def both(a, b):
    async with a:
        await asyncio.sleep(0.1)
        async with b:
            pass
async def main():
    a, b = asyncio.Lock(), asyncio.Lock()
    await asyncio.gather(both(a, b), both(b, a))
asyncio.run(main())
""") as process:
        status, told = look(box, process.pid)
    same((status, told["cause"], told["certainty"], told["live"]["threads"][0]["waits"]), (1, "hang-lock", "likely", "tasks"), "said")


def rule__a_named_pipe_that_nobody_opens_is_no_slow_disk(box):
    with running(box, READY + """
import os
os.mkfifo(sys.argv[0] + ".fifo")
open(sys.argv[0] + ".fifo")
""") as process:
        status, told = look(box, process.pid)
        where = open("/proc/%d/wchan" % process.pid).read()
    if where in ("", "0"):
        raise Skip("this kernel does not say where a thread waits")
    thread = told["live"]["threads"][0]
    same((status, told["cause"], told["certainty"], thread["waits"], thread["what"].startswith("the named pipe ")),
         (1, "hang-input-output", "possible", "pipe", True), "said")


def rule__a_process_under_a_debugger_is_not_told_to_continue(box):
    with running(box, WORKS["counts"]) as process:
        tracer = os.fork()
        if tracer == 0:
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            libc.ptrace.argtypes = [ctypes.c_long] * 4
            libc.ptrace(16, process.pid, 0, 0)      # PTRACE_ATTACH
            os.waitpid(process.pid, 0x40000000)     # __WALL
            time.sleep(PATIENCE)
            os._exit(0)
        try:
            time.sleep(0.5)
            run = subprocess.run([box.cuwhy, "explain", "--pid", str(process.pid)], capture_output=True, text=True, env=box.env())
        finally:
            os.kill(tracer, signal.SIGKILL)
            os.waitpid(tracer, 0)
    assert "is stopped by a debugger" in run.stdout and "process %d" % tracer in run.stdout and "CONT" not in run.stdout, run.stdout


def rule__a_process_that_works_says_so_in_words(box):
    with running(box, WORKS["counts"]) as process:
        run = subprocess.run([box.cuwhy, "explain", "--pid", str(process.pid)], capture_output=True, text=True, env=box.env())
    same((run.returncode, run.stdout.splitlines()[0]), (0, "cuwhy: process %d is not hung: it moved while it was observed" % process.pid), "said")


# Works until its input ends: four threads add up the same numbers again and again, and every sum must be right.
COUNTS = READY + """
import threading, time
N, ROUND = 4, 20_000
ended, sums = threading.Event(), [[] for _ in range(N)]
lock = threading.Lock()
def count(mine):
    while not ended.is_set():
        total = 0
        for i in range(ROUND):
            with lock:
                total += i & 7
        mine.append(total)
threads = [threading.Thread(target=count, args=(mine,)) for mine in sums]
reader = threading.Thread(target=lambda: (sys.stdin.read(), ended.set()))
for t in threads + [reader]:
    t.start()
while not ended.is_set():
    time.sleep(0.001)
for t in threads:
    t.join()
print(all(sums) and {s for mine in sums for s in mine} == {sum(i & 7 for i in range(ROUND))}, flush=True)
"""


def rule__two_hundred_looks_at_a_busy_program_harm_nothing(box):
    longest, looks, stops = [], 0, 0
    process = subprocess.Popen(box.script(COUNTS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=box.env())
    same(process.stdout.readline(), "ready\n", "said")
    while looks < 200 and process.poll() is None:
        run = subprocess.run([box.cuwhy, "explain", "--json", "--pid", str(process.pid), "--look", "100ms"], capture_output=True,
                             text=True, env=box.env())
        told = json.loads(run.stdout)
        if "live" in told:
            looks += told["live"]["looks"]
            stops += told["live"]["stops"]
            longest.append(told["live"]["longest_stop_us"])
    out, err = process.communicate(timeout=PATIENCE)
    same((process.returncode, out, err), (0, "True\n", ""), "the program")
    assert looks >= 200 and stops > 0, (looks, stops)
    longest.sort()
    print("# %d looks, %d stops, the longest %d us" % (looks, stops, longest[-1]))
    if os.geteuid() == 0:   # others cannot tell the kernel that it is urgent; now and then it has other work, too
        assert longest[len(longest) // 2] < 5000, "stopped for %s us" % longest


def rule__who_cannot_be_looked_at_is_told_in_one_sentence(box):
    status, told = look(box, 4194303)
    same((status, told["failure"]["message"]), (2, "there is no process 4194303"), "no such process")
    run = subprocess.run([box.cuwhy, "explain", "--pid", "train.py"], capture_output=True, text=True, env=box.env())
    same((run.returncode, run.stderr.splitlines()[0]), (2, "cuwhy: --pid takes the number of a process, not 'train.py'"), "not a number")


# What may be given as a number, and how the sentence begins that says why it is not looked at.
NO_NUMBERS = {
    "": "--pid takes the numbers of processes", ",": "--pid takes the numbers of processes", ",;, \n": "--pid takes the numbers of processes",
    "0": "--pid takes the number of a process, not '0'", "-1": "--pid takes the number of a process", "1.5": "--pid takes the number of a process",
    "+5": "--pid takes the number of a process", "0x10": "--pid takes the number of a process", "2147483648": "--pid takes the number of a process",
    "4294967297": "--pid takes the number of a process", "9" * 40: "--pid takes the number of a process", "4194303,": "there is no process 4194303",
    " 4194303": "there is no process 4194303", "4194303\n4194303\n": "there is no process 4194303", "2": "process 2 has no memory",
}


def rule__whatever_is_given_as_a_number_is_answered_in_one_sentence(box):
    """`--pid "$(pgrep train)"` gives nothing where no such program runs."""
    for text, sentence in NO_NUMBERS.items():
        if text == "2" and not os.path.exists("/proc/2"):
            continue        # a container has no threads of the kernel
        run = subprocess.run([box.cuwhy, "explain", "--pid", text], capture_output=True, text=True, env=box.env(), timeout=PATIENCE)
        assert (run.returncode, run.stdout) == (2, "") and run.stderr.startswith("cuwhy: " + sentence), (text, run.returncode, run.stdout, run.stderr)
        same(run.stderr.count("\nhint: "), 1, repr(text))


def rule__the_number_of_a_thread_stands_for_its_process(box):
    with running(box, UNSURE["a_thread_that_only_sleeps"][0]) as process:
        threads = [int(t) for t in os.listdir("/proc/%d/task" % process.pid)]
        status, told = look(box, max(threads), str(process.pid))
    same((len(threads), status, told["process"]["pid"], told["others"]), (2, 1, process.pid, []), "said")


def copy_program(path, to):
    """By a process of its own: a child of another test, not yet at its exec(), would have the copy open for writing, and it could not be run."""
    subprocess.run(["cp", path, to], check=True)
    return os.path.join(to, os.path.basename(path)) if os.path.isdir(to) else to


def as_nobody(box, *words, **env):
    """Runs cuwhy as user nobody, from where others can reach it: the sources may be in root's home."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        cuwhy = copy_program(box.cuwhy, folder)
        if "LD_PRELOAD" in env:
            env["LD_PRELOAD"] = copy_program(env["LD_PRELOAD"], folder)
        return subprocess.run([cuwhy, "explain", *words], capture_output=True, text=True, user=65534, group=65534, extra_groups=[],
                              env=box.env(**env), cwd="/")


def rule__another_users_process_needs_sudo(box):
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    run = as_nobody(box, "--json", "--pid", str(os.getpid()))
    told = json.loads(run.stdout)
    same((run.returncode, told["failure"]["message"], told["failure"]["hint"]),
         (2, "process %d belongs to another user" % os.getpid(), "sudo cuwhy explain --pid %d" % os.getpid()), "refused")


@contextlib.contextmanager
def of_nobody(*argv):
    """A process of user nobody."""
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    process = subprocess.Popen(argv, user=65534, group=65534, extra_groups=[], cwd="/")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def rule__what_yama_forbids_is_told_with_what_to_run(box):
    library = box.library("yama", "-ldl")
    with of_nobody("sleep", "600") as process, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = os.path.join(folder, "ptrace_scope")
        for scope, message, hint in ((1, "only root may look at process %d (Yama, ptrace_scope 1)", "sudo cuwhy explain --pid %d"),
                                     (2, "only root may look at process %d (Yama, ptrace_scope 2)", "sudo cuwhy explain --pid %d"),
                                     (3, "no process may look at another on this machine (Yama, ptrace_scope 3)", "it can only be changed at boot")):
            with open(file, "w", encoding="utf-8") as f:
                f.write("%d\n" % scope)
            for option in ((), ("--no-stop",)):
                run = as_nobody(box, "--pid", str(process.pid), *option, LD_PRELOAD=library, YAMA=file)
                lines = run.stderr.splitlines()
                same((run.returncode, run.stdout, lines[0]), (2, "", "cuwhy: " + (message % process.pid if "%d" in message else message)), "scope %d" % scope)
                assert len(lines) == 2 and lines[1].startswith("hint: " + (hint % process.pid if "%d" in hint else hint)), lines
        run = subprocess.run([box.cuwhy, "explain", "--pid", str(process.pid)], capture_output=True, text=True, env=box.env(LD_PRELOAD=library))
    same((run.returncode, len(run.stderr.splitlines())), (2, 2), "root (%s)" % run.stderr)
    assert "not even as root" in run.stderr or "--cap-add SYS_PTRACE" in run.stderr, run.stderr    # a container


def rule__an_own_process_that_hides_itself_is_not_called_another_users(box):
    """One whose program may be executed but not read: the kernel keeps it from its owner."""
    program = copy_program(shutil.which("sleep"), os.path.join(box.scratch, "hidden"))
    os.chmod(program, 0o711)
    os.chmod(box.scratch, 0o755)
    with of_nobody(program, "600") as process:
        run = as_nobody(box, "--pid", str(process.pid))
    same((run.returncode, len(run.stderr.splitlines())), (2, 2), "refused (%s)" % run.stderr)
    assert "another user" not in run.stderr, run.stderr


def rule__all_says_whose_processes_it_could_not_look_at(box):
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    with running(box, HUNG["cuda"]):
        run = as_nobody(box, "--all")
    same(run.returncode, 2, "status (%s%s)" % (run.stdout, run.stderr))
    assert "sudo cuwhy explain --all" in run.stderr, run.stderr


def rule__several_processes_are_looked_at_in_the_same_second(box):
    with running(box, WORKS["counts"]) as works, running(box.fresh(), HUNG["queue"]) as hung:
        status, told = look(box, works.pid, str(hung.pid), "4194303")
    same((status, told["cause"], told["process"]["pid"]), (1, "hang-lock", hung.pid), "the one that hangs")
    same([(o["cause"], o["process"]["pid"]) for o in told["others"]], [("none", works.pid)], "the other")
    same(list(json_page.flaws(told, "verdict")), [], "flaws of the JSON")


@alone      # it looks at what other tests look at, which only one can at a time
def rule__all_finds_the_processes_that_loaded_cuda(box):
    with running(box, HUNG["cuda"]) as process:
        run = subprocess.run([box.cuwhy, "explain", "--json", "--all"], capture_output=True, text=True, env=box.env())
        told = json.loads(run.stdout)
    found = [told] + told["others"]
    mine = [o for o in found if o["process"]["pid"] == process.pid]
    same([(o["cause"], o["where"]["line"]) for o in mine], [("kernel-hang", here(HUNG["cuda"]))], "found")


def rule__who_waits_for_whom_is_said(box):
    with running(box, HUNG["deadlock_rlock"]) as process:
        run = subprocess.run([box.cuwhy, "explain", "--pid", str(process.pid)], capture_output=True, text=True, env=box.env())
    text = re.sub(r"\s+", " ", run.stdout)
    assert re.search(r"the main thread at \S*program.py:12 waits for an RLock that is held by thread \d+ \(\S+\); thread \d+ \(\S+\) at "
                     r"\S*program.py:8 waits for an RLock that is held by the main thread", text), run.stdout
    assert "certain" in run.stdout, run.stdout


def rule__a_circle_of_locks_with_a_time_limit_is_not_certain(box):
    text = HUNG["deadlock_rlock"].replace("        b.acquire()", "        b.acquire(timeout=600)")
    with running(box, text) as process:
        status, told = look(box, process.pid)
    same((status, told["cause"], told["certainty"]), (1, "hang-deadlock", "possible"), "told")
    assert "with a time limit, and goes on by itself" in told["because"], told["because"]


def rule__locks_that_come_and_go_form_no_circle(box):
    """Nine threads take two locks, one at a time: who has which is another one at each moment, and a circle may be put together from several."""
    text = READY + """
import threading, time
locks = [threading.RLock() for _ in range(2)]
def work(i):
    while True:
        with locks[i]: time.sleep(.005)
        with locks[1 - i]: time.sleep(.005)
for i in range(8): threading.Thread(target=work, args=(i % 2,), daemon=True).start()
work(0)
"""
    with running(box, text) as process:
        for _ in range(20):
            same(look(box, process.pid, "--look", "100ms")[1]["cause"], "none", "cause")


# What may end a circle of RLocks -> how sure it may be that it is one, and what must be said.
BREAKERS = {
    "nothing": ("", "certain", ""),
    "an_interrupt": ("signal.signal(signal.SIGINT, raises)", "certain", ""),
    "a_child_handler_without_a_child": ("signal.signal(signal.SIGCHLD, raises)", "certain", ""),
    "idle_threads": ("threading.Thread(target=threading.Event().wait, daemon=True).start()", "certain", ""),
    "an_alarm": ("signal.signal(signal.SIGALRM, raises); signal.alarm(600)", "possible", "SIGALRM, which a timer may send"),
    "a_signal_of_a_timer": ("signal.signal(40, raises)", "possible", "signal 40, which a timer may send"),
    "a_signal": ("signal.signal(signal.SIGTERM, raises)", "likely", "SIGTERM"),
    "a_child_that_ends": ("signal.signal(signal.SIGCHLD, raises); subprocess.Popen(['sleep', '600'])", "possible", "SIGCHLD"),
    "a_child_that_sends": ("signal.signal(signal.SIGUSR1, raises); subprocess.Popen(['sleep', '600'])", "possible", "SIGUSR1"),
    "a_thread_that_sends": ("signal.signal(signal.SIGUSR1, raises); threading.Timer(600, print).start()", "possible", "SIGUSR1"),
    "a_watchdog": ("threading.Timer(600, os._exit, (1,)).start()", "likely", "goes on by itself"),
    "a_watchdog_of_python": ("import faulthandler; faulthandler.dump_traceback_later(600, exit=True)", "likely", "watchdog"),
}


@each(sorted(BREAKERS))
def rule__a_circle_that_something_may_end_is_not_certain(box, name):
    before, sure, words = BREAKERS[name]
    text = READY + "import os, signal, subprocess\ndef raises(*_): raise TimeoutError\n" + HUNG["deadlock_rlock"][len(READY):].replace("two()\n", "") + before
    with running(box, text + "\ntwo()\n") as process:
        status, told = look(box, process.pid)
    same((status, told["cause"], told["certainty"]), (1, "hang-deadlock", sure), told["because"])
    assert words in told["because"], told["because"]


def rule__a_circle_of_locks_without_an_owner_that_a_signal_may_end_is_only_possible(box):
    """Of a plain Lock only the `with` blocks around it tell whose it is."""
    text = HUNG["deadlock_lock"].replace("import threading\n", "import signal, threading\ndef raises(*_): raise TimeoutError\nsignal.signal(signal.SIGTERM, raises)\n")
    with running(box, text) as process:
        status, told = look(box, process.pid)
    same((status, told["cause"], told["certainty"]), (1, "hang-deadlock", "possible"), told["because"])
    assert "SIGTERM" in told["because"], told["because"]


def rule__a_circle_beside_a_main_thread_that_goes_on_is_only_possible(box):
    for last in ("time.sleep(600)", "n = 0\nwhile True: n += 1"):
        text = HUNG["deadlock_rlock"].replace("two()\n", "threading.Thread(target=two, daemon=True).start()\nimport time\n" + last)
        with running(box.fresh(), text) as process:
            status, told = look(box, process.pid)
        same((status, told["cause"], told["certainty"]), (1, "hang-deadlock", "possible"), told["because"])
        assert "the main thread" in told["because"], told["because"]


def rule__the_main_thread_of_thousands_is_not_left_out(box):
    """Python's list of threads begins with the newest."""
    text = """
import sys, threading, time
threading.stack_size(65536)
event = threading.Event()
for _ in range(4200): threading.Thread(target=event.wait, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""
    with running(box, text) as process:
        status, told = look(box, process.pid, "--look", "100ms")
    same((status, told["cause"], told["certainty"], len(told["live"]["threads"])), (1, "hang-sleep", "possible", 4201), told["title"])
    same(told["live"]["thread"], process.pid, "the thread to look at")


@each(in_every_python(("deadlock_rlock", "queue")))
def rule__a_program_in_a_container_is_read_from_outside(box, test):
    """Where its threads have other numbers than outside."""
    name, _, python = of_every_python(test)
    argv = box.script(HUNG[name])
    if python:
        argv[0] = python
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        raise Skip("a namespace of processes cannot be made here")
    process = subprocess.Popen(["unshare", "--pid", "--fork"] + argv, stdout=subprocess.PIPE, text=True, env=box.env(), start_new_session=True)
    try:
        same(process.stdout.readline(), "ready\n", "said")
        settle(process.pid)
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="utf-8") as f:
            child = int(f.read())
        status, told = look(box, child)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    same((status, told["cause"], (told["where"] or {}).get("line")), (1, re.search(r"cause: (\S+)", HUNG[name]).group(1), here(HUNG[name])), told["title"])


def rule__native_code_that_holds_the_gil_is_found_through_those_who_wait(box):
    text = READY + """
import ctypes, threading, time
spin = ctypes.PyDLL(sys.argv[1]).spin
def compute():
    time.sleep(0.2)
    spin()  # <- here
t = threading.Thread(target=compute, daemon=True)
t.start()
time.sleep(1000)
while True:
    pass
""".replace("time.sleep(1000)", "time.sleep(0.3)")
    with running(box, text) as process:
        status, told = look(box, process.pid)
    same((status, told["cause"], told["where"]["line"]), (1, "hang-loop", here(text)), "the thread that holds the GIL")
    main = [t for t in told["live"]["threads"] if t["main"]][0]
    same((main["waits"], main["holder"], main["holder_sure"]), ("gil", told["live"]["thread"], True), "the main thread")


def of_session(leader):
    """The processes of a session that run program.py."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as f:
                if os.getsid(int(name)) == leader and b"program.py" in f.read():
                    yield int(name)
        except OSError:
            pass    # it has ended


def rule__gpus_and_the_recorder_inside_are_told(box):
    """Without a restart, but `cuwhy run` had started it."""
    text = HUNG["cuda"].replace("cudrv.launch(", "for _ in range(3): cudrv.launch(cudrv.kernel('nop'), (1,), (1,))\ncudrv.launch(")
    argv = [box.cuwhy, "run", "--gpu", "sim:tiny", "--out", os.path.join(box.scratch, "out"), "--"] + box.script(text)
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env=box.env(PYTHONPATH=os.path.join(HERE, "site-packages")))
    try:
        same(process.stdout.readline(), "ready\n", "said")
        settle(process.pid)
        child = [p for p in of_session(process.pid) if os.readlink("/proc/%d/exe" % p) != os.path.realpath(box.cuwhy)][0]
        nvml = "gpu=2G,busy=100,proc=%d:512M" % child
        run = subprocess.run([box.cuwhy, "explain", "--json", "--pid", str(child)], capture_output=True, text=True,
                             env=box.env(LD_LIBRARY_PATH=box.sim, CUWHY_SIM="tiny", CUWHY_SIM_NVML=nvml))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    told = json.loads(run.stdout)
    same((told["cause"], told["certainty"], told["where"]["line"]), ("kernel-hang", "likely", here(text)), "cause")
    recorder = told["live"]["recorder"]
    same((recorder["launches"], recorder["last_kernel"], recorder["last_line"].split("/")[-1]), (4, "hang(int*)", "program.py:7"), "recorder")
    same([(g["bytes"], g["utilization"]) for g in told["live"]["gpus"]], [(512 << 20, 100)], "GPUs")


def rule__without_libdw_return_addresses_on_the_stack_do(box):
    folder = os.path.join(box.scratch, "lib")
    os.mkdir(folder)
    with open(os.path.join(folder, "libdw.so.1"), "w", encoding="utf-8") as stream:
        stream.write("not a library\n")
    with running(box, HUNG["cuda"]) as process:
        run = subprocess.run([box.cuwhy, "explain", "--json", "--pid", str(process.pid)], capture_output=True, text=True,
                             env=box.env(LD_LIBRARY_PATH=folder))
    told = json.loads(run.stdout)
    same((told["cause"], told["where"]["line"]), ("kernel-hang", here(HUNG["cuda"])), "cause")
    same(told["live"]["no_native"], "libdw is not installed: on Debian, apt-get install libdw1", "why")
    assert "libcuda.so.1" in [f["library"] for f in told["live"]["threads"][0]["native"]], told["live"]["threads"][0]["native"]


def rule__native_stacks_are_unwound_to_their_ends(box):
    with running(box, HUNG["native"]) as spins, running(box.fresh(), HUNG["lock"]) as sleeps:
        for process in (spins, sleeps):
            told = look(box, process.pid)[1]
            if told["live"]["no_native"]:
                raise Skip(told["live"]["no_native"])
            frames = told["live"]["threads"][0]["native"]
            assert all(f["unwound"] for f in frames), frames
            names = [f["function"] for f in frames]
            assert "_PyEval_EvalFrameDefault" in names and names[-1] == "_start", names


def rule__a_process_that_ends_or_runs_no_python_is_not_called_hung(box):
    spin = box.program("spin_alone")
    process = subprocess.Popen([spin])
    try:
        status, told = look(box, process.pid)
    finally:
        process.kill()
    same((status, told["cause"], told["live"]["no_python"]), (0, "none", "there is no Python in it"), "a C program that runs")
    wait_until(lambda: open("/proc/%d/stat" % process.pid, encoding="utf-8").read().rpartition(") ")[2][0] == "Z", "its end")
    status, told = look(box, process.pid)   # a zombie: nobody has waited for it
    same((status, told["failure"]["message"]), (2, "process %d has no memory: it has ended, or is part of the kernel" % process.pid), "a zombie")
    process.wait()


def rule__a_program_on_the_command_line_has_lines_too(box):
    text = "print('ready', flush=True)\nimport time\ndef pause():\n    time.sleep(1000)\npause()\n"
    process = subprocess.Popen([box.python, "-c", text], stdout=subprocess.PIPE, text=True, env=box.env(), start_new_session=True)
    try:
        same(process.stdout.readline(), "ready\n", "said")
        settle(process.pid)
        status, told = look(box, process.pid)
    finally:
        process.kill()
        process.communicate()
    same((status, told["cause"], told["where"]["line"], told["where"]["source"]), (1, "hang-sleep", 4, "time.sleep(1000)"), "line")
