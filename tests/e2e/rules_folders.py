# SPDX-License-Identifier: Apache-2.0
"""Where cuwhy puts files, what it deletes, and who could put other files there."""
import contextlib
import fcntl
import glob
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time

from toolbox import PATIENCE, Skip, same, wait_until

FAILING = """
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))
"""
TELL = ["/bin/sh", "-c", 'echo "$LD_PRELOAD"; echo "$LD_LIBRARY_PATH"; dirname "$CUWHY_SOCK"']


def only_ours(path):
    """Can nobody but root and this user ever put something else at this path?"""
    path = os.path.realpath(path)
    while True:
        st = os.lstat(path)
        group = st.st_mode & stat.S_IWGRP and st.st_gid != st.st_uid
        if st.st_uid not in (0, os.geteuid()) or st.st_mode & stat.S_IWOTH or group:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


@contextlib.contextmanager
def lasting():
    """A new folder that only this user can make anew; the scratch folders are in /tmp."""
    for place in (os.path.expanduser("~"), os.path.dirname(os.path.abspath(__file__))):
        if os.path.isdir(place) and os.access(place, os.W_OK) and only_ours(place):
            folder = tempfile.mkdtemp(prefix=".cuwhy-rule-", dir=place)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return
    raise Skip("no folder here that only this user can write to")


def install(box, folder):
    """A copy of cuwhy and its parts."""
    os.makedirs(folder)
    for name in ("cuwhy", "libcuwhy-rec.so", "libcuwhy-writes.so"):
        shutil.copy(os.path.join(box.build, name), folder)
    for name in ("sim", "lib32", "preload"):
        shutil.copytree(os.path.join(box.build, name), os.path.join(folder, name), symlinks=True)
    return os.path.join(folder, "cuwhy")


def told(box, cuwhy, **env):
    """What TELL prints under that cuwhy: libraries to preload, folders to search, the run's folder."""
    done = subprocess.run([cuwhy, "run", "--gpu", "sim:tiny"] + TELL, capture_output=True, text=True, env=box.env(**env), timeout=PATIENCE)
    same((done.returncode, done.stderr), (0, ""), "status and stderr")
    preload, search, folder = done.stdout.splitlines()
    return preload.split(":")[0], search.split(":")[0], folder


def rule__no_other_user_can_ever_replace_what_programs_load(box):
    with lasting() as home:
        cuwhy = install(box, os.path.join(home, "bin"))
        state = os.path.join(home, "state")
        preload, search, folder = told(box, cuwhy, XDG_STATE_HOME=state)
        assert preload.startswith(home + "/bin/") and search == home + "/bin/sim", (preload, search)
        assert folder.startswith(home), folder
        same(os.path.exists(os.path.join(state, "cuwhy")), False, "a trace in the state folder")
        # installed where a cleaner may remove it, then somebody else may create it
        cuwhy = install(box, os.path.join(box.scratch, "bin"))
        for again in range(2):
            preload, search, folder = told(box, cuwhy, XDG_STATE_HOME=state)
            parts = os.path.join(state, "cuwhy", "parts") + "/"
            assert preload.startswith(parts) and search.startswith(parts), (preload, search)
            same(sorted(map(len, (glob.glob(parts + "*"), glob.glob(parts + "*/*")))), [2, 2], "copies")
        same(only_ours(search), True, "only we can replace it")
        # a file that was cut short when the machine went down is written again
        library = os.path.join(search, "libcuda.so.1")
        os.truncate(library, 100)
        same(told(box, cuwhy, XDG_STATE_HOME=state)[1], search, "place")
        same(os.path.getsize(library), os.path.getsize(os.path.join(box.sim, "libcuda.so.1")), "size")


def rule__a_home_that_is_not_there_is_not_created(box):
    home = os.path.join(box.scratch, "nobody")
    run = box.under(["true"], gpu=None, out=False, HOME=home, XDG_STATE_HOME="", XDG_RUNTIME_DIR="")
    same((run.status, os.path.exists(home)), (0, False), "status, and the home")
    with lasting() as folder:
        home = os.path.join(folder, "nobody")
        run = box.under(["true"], gpu=None, out=False, HOME=home, XDG_STATE_HOME="", XDG_RUNTIME_DIR="")
        same((run.status, os.listdir(folder)), (0, []), "status, and the home's folder")


def rule__a_home_that_others_can_write_to_gets_no_library(box):
    with lasting() as home:
        cuwhy = install(box, os.path.join(box.scratch, "bin"))
        os.chmod(home, 0o777)
        same(told(box, cuwhy, XDG_STATE_HOME=home)[1], box.scratch + "/bin/sim", "place")
        same(os.listdir(home), [], "files there")


DAEMON = """
import os, shutil, subprocess, sys, time, cudrv
cudrv.init()
if os.fork():
    sys.exit(0)
os.setsid()
while os.path.exists("/proc/%d" % CUWHY) and open("/proc/%d/stat" % CUWHY).read().split()[2] != "Z":
    time.sleep(0.05)
for name in os.listdir(os.environ["TMPDIR"]):           # a cleaner, ten days later
    shutil.rmtree(os.path.join(os.environ["TMPDIR"], name))
left = [v for v in (os.environ["LD_PRELOAD"] + ":" + os.environ["LD_LIBRARY_PATH"]).split(":") if v.startswith(os.environ["TMPDIR"])]
done = subprocess.run(["true"], capture_output=True, text=True)
with open(sys.argv[1] + ".new", "w") as out:
    out.write(repr((left, done.returncode, done.stderr)))
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


def rule__a_daemon_that_outlives_cuwhy_loads_nothing_from_a_shared_folder(box):
    shared, answer = os.path.join(box.scratch, "tmp"), os.path.join(box.scratch, "answer")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    env = {"TMPDIR": shared, "XDG_RUNTIME_DIR": ""}
    run = box.under(box.script("import os\nCUWHY = os.getppid()\n" + DAEMON) + [answer], "--no-core-dump", **env)
    same(run.status, 0, "status (%s)" % run.err)
    wait_until(lambda: os.path.exists(answer), "the daemon's answer")
    with open(answer, encoding="utf-8") as stream:
        same(stream.read(), repr(([], 0, "")), "what it would load from there, its child's status and stderr")


LITTERS = """
import os, sys, time
folder = os.path.dirname(os.environ["CUWHY_SOCK"])
def litter(i):
    os.close(os.open(os.path.join(folder, "core-%d" % i), os.O_CREAT | os.O_WRONLY))
for i in range(3000):       # emptying the folder takes a while
    litter(i)
if os.fork():
    sys.exit(0)
os.setsid()
answer = "there"
try:
    while os.path.exists(os.path.join(folder, "s")):
        litter(i := i + 1)
    for i in range(i, i + 100):
        litter(i)
except FileNotFoundError:
    answer = "gone"
with open(sys.argv[1], "w") as out:
    out.write(answer)
"""


def rule__a_folder_that_a_daemon_writes_to_is_removed_by_a_later_run(box):
    runtime, answer = os.path.join(box.scratch, "run"), os.path.join(box.scratch, "answer")
    os.mkdir(runtime, 0o700)
    run = box.under(box.script(LITTERS) + [answer], XDG_RUNTIME_DIR=runtime)
    same(run.status, 0, "status (%s)" % run.err)
    wait_until(lambda: os.path.exists(answer) and os.path.getsize(answer), "the daemon's end")
    wait_until(lambda: not box.under(["true"], XDG_RUNTIME_DIR=runtime).status and not os.listdir(runtime), "an empty folder")


def rule__a_signal_while_the_folder_is_made_goes_to_the_program_and_leaves_none(box):
    runtime = os.path.join(box.scratch, "run")
    os.mkdir(runtime, 0o700)
    argv = [box.cuwhy, "run", "sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.05; done"]
    done = subprocess.run(argv, env=box.env(XDG_RUNTIME_DIR=runtime, LD_PRELOAD=box.library("early_signal", "-ldl")), timeout=PATIENCE)
    assert done.returncode in (9, -signal.SIGTERM), done.returncode     # the shell may not have come to its trap
    same(os.listdir(runtime), [], "files in the runtime folder")


def held(path):
    """Does anybody hold a lock on it?"""
    with open(path, "rb+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def rule__what_a_killed_run_left_is_removed_by_one_in_another_place(box):
    places = [os.path.join(box.scratch, n) for n in ("first", "second")]
    for place in places:
        os.mkdir(place, 0o700)
    env = box.env(XDG_RUNTIME_DIR=places[0])
    child = subprocess.Popen([box.cuwhy, "run", "sh", "-c", "echo $CUWHY_SOCK; kill -9 0"], env=env, stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    sock = child.communicate(timeout=PATIENCE)[0].strip()
    left = os.path.dirname(sock)
    same(os.path.dirname(left), places[0], "place of the folder")
    assert os.path.exists(os.path.join(left, ".cuwhy")), os.listdir(places[0])
    wait_until(lambda: not held(os.path.join(left, ".cuwhy")), "the end of the run's processes")
    os.mkdir(os.path.join(places[0], "cuwhy-ab12CD"), 0o700)    # no mark: it may be the user's
    run = box.under(["true"], gpu=None, out=False, XDG_RUNTIME_DIR=places[1], TMPDIR=places[0])
    same(run.status, 0, "status")
    same(os.listdir(places[0]), ["cuwhy-ab12CD"], "what is left")


DIES = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import cudrv
from cuwhy import _live, _program
cudrv.init()
with _live.recording() as copy:
    print(_program.ask_json(["explain", "--json"], "", _program.Deadline(600), copy)["cause"], flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def rule__a_program_that_dies_while_its_recording_is_asked_leaves_no_file(box):
    temporary, package = os.path.join(box.scratch, "tmp"), os.path.join(os.path.dirname(box.build), "python")
    os.mkdir(temporary)
    run = box.under(box.script(DIES) + [package], "--no-core-dump", TMPDIR=temporary, CUWHY_PROGRAM=box.cuwhy)
    same((run.status, run.out), (128 + signal.SIGSEGV, "none\n"), "status and stdout (%s)" % run.err)
    same(os.listdir(temporary), [], "what is left in the temporary folder")


LOGOUT = """
import os, shutil, subprocess, sys, time, cudrv
shutil.rmtree(os.environ["XDG_RUNTIME_DIR"])
print(subprocess.run(["true"], capture_output=True, text=True).stderr, end="")
done = subprocess.run([sys.executable, "-c", sys.argv[1]], stderr=subprocess.DEVNULL)
print(done.returncode)
sys.exit(done.returncode)
"""


def rule__programs_started_after_a_logout_are_silent_and_recorded(box):
    fault = "import cudrv; cudrv.init(); cudrv.launch(cudrv.kernel('trap'), (1,), (1,)); cudrv.synchronize()"
    for text, cause in ((FAILING, "launch-config-grid-limit"), (fault, None)):
        runtime = os.path.join(box.scratch, "runtime")
        os.mkdir(runtime, 0o700)
        run = box.under(box.script(LOGOUT) + [text], XDG_RUNTIME_DIR=runtime)
        same((run.status, run.out), (1, "1\n"), "status and output")
        verdict = box.verdict(run)
        assert verdict["cause"] == cause or (not cause and verdict["cause"] not in ("none", "unknown")), verdict["cause"]
        same(os.path.exists(runtime), False, "the folder")


LISTEN = """
import os, socket, sys
path = sys.argv[1]
socks = []
for name in (path, "\\0" + path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(name)
    s.listen(8)
    s.settimeout(float(sys.argv[2]))
    socks.append(s)
os.chmod(path, 0o777)
print("ready", flush=True)
for s in socks:
    try:
        peer = s.accept()[0]
        print(len(peer.recv(4096)), flush=True)
    except TimeoutError:
        print("nobody", flush=True)
"""


def rule__a_socket_of_another_user_gets_no_memory(box):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    os.chmod(box.scratch, 0o755)
    folder = os.path.join(box.scratch, "theirs")
    os.mkdir(folder)
    for user in (65534, 0):
        os.chown(folder, user, user)
        path = os.path.join(folder, "s%d" % user)
        with subprocess.Popen(["/usr/bin/python3", "-c", LISTEN, path, str(PATIENCE)], stdout=subprocess.PIPE, text=True, user=user) as thief:
            same(thief.stdout.readline(), "ready\n", "the listener")
            run = box.plain_sim(box.script("import cudrv\ncudrv.init()\nprint('fine')\n"), LD_PRELOAD=box.recorder, CUWHY_SOCK=path)
            same((run.status, run.out, run.err), (0, "fine\n", ""), "the program")
            got = [thief.stdout.readline().strip() for _ in range(2 if user else 1)]
            thief.kill()
        same(got == ["0", "0"] if user else int(got[0]) > 0, True, "what uid %d received: %r" % (user, got))


# ---- recordings ---------------------------------------------------------------------------------------


def fail_once(box, *more, **env):
    return box.under(box.script(FAILING), "--no-core-dump", *more, out=False, **env)


def recordings(box):
    return sorted(glob.glob(os.path.join(box.scratch, "state", "*")))


def newest(box):
    return max((f for f in recordings(box) if os.path.basename(f)[:8].isdigit() and len(os.path.basename(f)) > 8), key=os.path.getmtime)


def in_pid_namespace(argv):
    """The same command as process 1, as in a container; plain where that is not allowed."""
    able = subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], capture_output=True).returncode == 0
    return (["unshare", "-p", "-f", "--mount-proc"] if able else []) + argv, able


def rule__containers_that_share_a_home_get_recordings_of_their_own(box):
    argv, able = in_pid_namespace([box.cuwhy, "run", "--no-core-dump", "--gpu", "sim:tiny"] + box.script(FAILING))
    if not able:
        raise Skip("no pid namespaces here")
    time.sleep(1.02 - time.time() % 1)      # they begin in the same second
    runs = [subprocess.Popen(argv, env=box.env(), stderr=subprocess.DEVNULL) for _ in range(4)]
    same([r.wait(PATIENCE) for r in runs], [1] * 4, "status")
    same(len(recordings(box)), 4, "recordings")
    for folder in recordings(box):
        same((len(glob.glob(folder + "/*.cwr")), os.path.exists(folder + "/verdict.json")), (1, True), folder)


def rule__a_run_in_progress_and_its_recording_outlast_ten_others(box):
    flag = os.path.join(box.scratch, "go")
    text = """
import os, subprocess, sys, time
subprocess.run([sys.executable, "-c", %r], stderr=subprocess.DEVNULL)
while not os.path.exists(%r):
    time.sleep(0.05)
""" % (FAILING, flag)
    path = os.path.join(box.scratch, "long.py")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    argv, _ = in_pid_namespace([box.cuwhy, "run", "--no-core-dump", "--gpu", "sim:tiny", box.python, path])
    with subprocess.Popen(argv, env=box.env(), stderr=subprocess.PIPE, text=True) as first:
        wait_until(lambda: glob.glob(os.path.join(box.scratch, "state", "*", "run.json")), "the recording")
        folder = recordings(box)[0]
        # as if it had been there for a while: what decides is not its age
        for name in os.listdir(folder):
            os.utime(os.path.join(folder, name), (1, 1))
        for _ in range(11):
            fail_once(box)
        assert os.path.exists(folder + "/run.json"), "removed while in progress"
        with open(flag, "w", encoding="utf-8"):
            pass
        err = first.stderr.read()
    assert folder in err, err
    assert os.path.exists(folder + "/verdict.json"), "removed as soon as it was complete"


def rule__only_what_cuwhy_put_there_by_itself_is_pruned(box):
    state = os.path.join(box.scratch, "state")
    os.makedirs(os.path.join(state, "01"))
    for name in ("run.json", "model.pt", ".cuwhy"):
        with open(os.path.join(state, "01", name), "w", encoding="utf-8") as stream:
            stream.write('{"mine": 1, "cuwhy": "x", "end": "x"}')
    fail_once(box, "--out", os.path.join(state, "2026-exp"))
    fail_once(box)
    os.rename(newest(box), state + "/2026-good")
    fail_once(box)
    noted = newest(box)
    with open(noted + "/notes.txt", "w", encoding="utf-8"):
        pass
    fail_once(box)
    kept = newest(box)
    os.unlink(kept + "/.cuwhy")
    before = {f: sorted(os.listdir(f)) for f in (state + "/01", state + "/2026-exp", state + "/2026-good", noted, kept)}
    for _ in range(12):
        fail_once(box)
    for folder, names in before.items():
        same(os.path.isdir(folder) and sorted(os.listdir(folder)), names, folder)
    same(len(recordings(box)), len(before) + 10, "recordings")


def rule__what_a_killed_cuwhy_left_is_pruned_too(box):
    run = fail_once(box)
    for again in range(3):
        with subprocess.Popen([box.cuwhy, "run", "--keep", "--gpu", "sim:tiny", box.python, "-c",
                               "import subprocess, sys\n"
                               "subprocess.run([sys.executable, '-c', 'import cudrv; cudrv.init()'])\nprint('x', flush=True)\nsys.stdin.read()"],
                              env=box.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
            victim.stdout.readline()
            wait_until(lambda: len(recordings(box)) >= 2 + again, "the recording")
            with open("/proc/%d/task/%d/children" % (victim.pid, victim.pid), encoding="ascii") as stream:
                others = stream.read().split()
            victim.kill()
        wait_until(lambda: not any(os.path.exists("/proc/" + pid) for pid in others), "the end of cuwhy and the program")
    first = recordings(box)
    same((run.status, len(first)), (1, 4), "status, recordings")
    for _ in range(10):
        fail_once(box)
    same([f for f in first if os.path.exists(f)], [], "left of the first four")


# ---- --out ----------------------------------------------------------------------------------------------


def out_of(box, folder, *more):
    return subprocess.run([box.cuwhy, "run", "--out", folder] + list(more) + ["echo", "hi"], capture_output=True, text=True,
                          env=box.env(), timeout=PATIENCE)


def rule__of_many_that_start_at_once_one_gets_the_out_folder(box):
    old, folder = os.path.join(box.scratch, "old"), os.path.join(box.scratch, "out")
    same(out_of(box, old).returncode, 0, "a recording to replace")
    for again in range(6):
        argv = [box.cuwhy, "run", "--force", "--out", folder, "sh", "-c", "read x"]
        runs = [subprocess.Popen(argv, env=box.env(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(6)]
        wait_until(lambda: sum(r.poll() is None for r in runs) <= 1, "five that are refused")
        same(sorted(str(r.poll()) for r in runs), ["125"] * 5 + ["None"], "status while one runs, round %d" % again)
        for r in runs:
            r.stdin.close()
        same(sorted(r.wait(PATIENCE) for r in runs), [1] + [125] * 5, "status")
        same(sorted(os.listdir(folder)), ["run.json", "verdict.json"], "the recording")
        shutil.rmtree(folder)
        if again % 2:
            shutil.copytree(old, folder)


def rule__two_runs_never_share_an_out_folder(box):
    folder = os.path.join(box.scratch, "out")
    with subprocess.Popen([box.cuwhy, "run", "--out", folder, "sh", "-c", "echo x; read x"], env=box.env(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as first:
        first.stdout.readline()
        for more in ([], ["--force"]):
            run = out_of(box, folder, *more)
            same((run.returncode, run.stdout), (125, ""), "status and output of the second (%s)" % run.stderr)
            assert "another 'cuwhy run' is recording" in run.stderr, run.stderr
        first.communicate(b"x\n")
        same(first.returncode, 0, "status of the first")
    same(sorted(os.listdir(folder)), ["run.json", "verdict.json"], "its recording")
    same(out_of(box, folder).returncode, 125, "without --force")
    same(out_of(box, folder, "--force").stdout, "hi\n", "with --force")


def rule__what_a_killed_run_left_in_out_does_not_block_the_next(box):
    folder = os.path.join(box.scratch, "out")
    with subprocess.Popen([box.cuwhy, "run", "--out", folder, "sh", "-c", "echo x; read x"], env=box.env(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as first:
        first.stdout.readline()
        os.kill(first.pid, signal.SIGKILL)
        same(out_of(box, folder, "--force").stdout, "hi\n", "output of the next")
    cut_short = os.path.join(box.scratch, "cut-short")      # killed while it wrote its first file
    os.mkdir(cut_short)
    open(os.path.join(cut_short, "run.json.Qgyjpi"), "w").close()
    same(out_of(box, cut_short).stdout, "hi\n", "output of the next after the earliest kill")


def rule__force_replaces_a_recording_of_many_processes(box):
    """Its run.json is longer than what tells that it is one."""
    child = [box.python, "-c", "import cudrv; cudrv.init()"]
    many = box.script("import subprocess\nfor i in range(20): subprocess.run(%r)\n" % child)
    run = box.under(many, "--keep")
    assert os.path.getsize(run.folder + "/run.json") > 4096, "too short for this test"
    again = out_of(box, run.folder, "--force")
    same((again.returncode, again.stdout, len(glob.glob(run.folder + "/*.cwr"))), (0, "hi\n", 0), "the next (%s)" % again.stderr)


def rule__force_deletes_nothing_but_a_recording(box):
    for name, text in (("run.json", '{"mine": 1}'), ("1-1.json", "{}"), ("verdict.json", "{}")):
        folder = os.path.join(box.scratch, name)
        os.mkdir(folder)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(text)
        same((out_of(box, folder, "--force").returncode, os.listdir(folder)), (125, [name]), "a folder with a foreign " + name)
    folder = os.path.join(box.scratch, "out")
    same(out_of(box, folder).returncode, 0, "a recording")
    with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8"):
        pass
    same((out_of(box, folder, "--force").returncode, len(os.listdir(folder))), (125, 3), "a recording with notes")


def rule__a_program_that_cannot_start_leaves_no_out_folder(box):
    folder, program = os.path.join(box.scratch, "out"), os.path.join(box.scratch, "nothing")
    run = subprocess.run([box.cuwhy, "run", "--out", folder, program], capture_output=True, env=box.env(), timeout=PATIENCE)
    same((run.returncode, os.path.exists(folder)), (127, False), "status, and the folder")
    os.mkdir(folder)
    subprocess.run([box.cuwhy, "run", "--out", folder, program], capture_output=True, env=box.env(), timeout=PATIENCE)
    same(os.listdir(folder), [], "files in a folder that was there")
