# SPDX-License-Identifier: Apache-2.0
"""What a program's parent, its terminal and its container see of `cuwhy run`; and what happens when parts of cuwhy die."""
import glob
import json
import os
import pty
import resource
import signal
import subprocess
import time

from rules_program import read_until
from toolbox import PATIENCE, Skip, same, wait_until

KEEPER = """
import os, resource, signal, sys, time
sup = os.getppid()
def name(pid):
    try:
        return open("/proc/%s/comm" % pid).read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
def keeper():
    while True:     # it may be younger than this program, and have no name yet
        for pid in open("/proc/%d/task/%d/children" % (sup, sup)).read().split():
            if name(pid) == "cuwhy-keeper":
                return int(pid)
        time.sleep(0.01)
def kill_keeper():
    pid = keeper()
    os.kill(pid, signal.SIGKILL)
    while name(pid):
        time.sleep(0.01)
"""

FAILING = """
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))
"""


def on_terminal(argv, env, keys):
    """What a command prints on a terminal of its own; `keys` are typed when it is ready, and once only."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, env)
    text = read_until(master, [b"ready"])
    os.write(master, keys)
    text += read_until(master, [b"ready"])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(master)
    return text.decode()


def rule__ctrl_c_ends_the_loop_of_a_script(box):
    script = "for i in 1 2 3; do echo round $i; %s sh -c 'echo ready; exec sleep 600'; done"
    text = on_terminal(["bash", "-c", script % (box.cuwhy + " run")], box.env(), b"\x03")
    assert "round 1" in text and "round 2" not in text, text


def rule__a_signal_that_ends_the_program_ends_cuwhy(box):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGKILL, signal.SIGRTMIN):
        done = subprocess.run([box.cuwhy, "run", "sh", "-c", "ulimit -c 0; kill -%d $$" % number], env=box.env(),
                              cwd=box.scratch, timeout=PATIENCE)
        same(done.returncode, -number, "how cuwhy ended")
        same([n for n in os.listdir(box.scratch) if n.startswith("core")], [], "core files")


def rule__a_closed_terminal_reaches_the_program(box):
    told = os.path.join(box.scratch, "told")
    argv = [box.cuwhy, "run", "sh", "-c", "trap 'echo hung up > %s; exit 3' HUP; echo ready; while :; do sleep 0.1; done" % told]
    pid, master = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, box.env())
    read_until(master, [b"ready"])
    os.close(master)
    _, status = os.waitpid(pid, 0)
    same(os.waitstatus_to_exitcode(status), 3, "status")
    same(open(told).read(), "hung up\n", "what the program did")


def rule__an_alarm_set_before_exec_reaches_the_program(box):
    done = subprocess.run([box.cuwhy, "run", "sleep", "600"], env=box.env(), timeout=PATIENCE,
                          preexec_fn=lambda: signal.alarm(1))
    same(done.returncode, -signal.SIGALRM, "how cuwhy ended")


def rule__a_job_stops_by_the_same_signal(box):
    # in a group of its own, whose parent is in another one of the session: only such a job can be stopped
    child = subprocess.Popen([box.cuwhy, "run", "sh", "-c", "kill -TSTP $$; exit 4"], env=box.env(), preexec_fn=os.setpgrp)
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    same(os.WSTOPSIG(status), signal.SIGTSTP, "stopped by")
    os.kill(child.pid, signal.SIGCONT)
    same(child.wait(PATIENCE), 4, "status")


def rule__without_a_program_no_signal_goes_anywhere(box):
    """At a limit of processes one of cuwhy's own may be the first that cannot be started; 9: all can, but there is no such program."""
    told = os.path.join(box.scratch, "signals")
    hook = box.library("no_process", "-ldl")
    for fails, program, status, words in ((1, "true", 125, "cannot start a process"), (2, "true", 125, "cannot start a process"),
                                          (3, "true", 125, "cannot start a process"), (9, "./no-such-program", 127, "cannot run")):
        done = subprocess.run([box.cuwhy, "run", program], env=box.env(LD_PRELOAD=hook, FORK_FAILS=str(fails), SIGNALS=told),
                              capture_output=True, text=True, timeout=PATIENCE)
        same(done.returncode, status, "status if fork %d fails" % fails)
        assert done.stderr.startswith("cuwhy: " + words), done.stderr
        assert not os.path.exists(told), open(told).read()


def rule__pid_1_reaps_orphans(box):
    # at any moment one of them may have ended just now, so look until there is none; a zombie that nobody reaps stays
    script = "for i in 1 2 3 4 5; do (sleep 0.2 &); done; " \
             "for i in $(seq 600); do left=$(ps ax -o stat,comm | grep -cE '^Z| sleep$'); [ $left = 0 ] && break; sleep 0.1; done; " \
             "echo $left"
    argv = ["unshare", "-r", "-p", "-f", "--mount-proc", box.cuwhy, "run", "sh", "-c", script]
    done = subprocess.run(argv, env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
    if "unshare" in done.stderr:
        raise Skip("no PID namespaces")
    same(done.stdout.strip(), "0", "zombies, and orphans that still run")


def unknown(run, words):
    verdict = json.loads(run.err.splitlines()[-1])
    same(verdict["cause"], "unknown", "cause")
    for text in (verdict["title"], verdict["warning"]):
        assert words in text, text
    return verdict


def rule__a_keeper_that_is_killed_costs_the_verdict_only(box):
    run = box.under(box.script(KEEPER + "kill_keeper()\nsys.exit(7)\n"))
    same(run.status, 7, "status")
    unknown(run, "signal 9")
    same(json.load(open(os.path.join(run.folder, "verdict.json")))["cause"], "unknown", "verdict.json")


def rule__what_a_killed_keeper_left_is_a_recording_without_an_answer(box):
    """Killed while the program runs, and before it was told that there is one: at most a handled failure is known."""
    handled = "try:\n    cudrv.launch(cudrv.kernel('nop'), (1, 70000), (1,))\nexcept Exception:\n    pass\n"
    for before in ("", "import subprocess\nsubprocess.run([sys.executable, '-c', %r])\n" % ("import cudrv\ncudrv.init()\n" + handled)):
        run = box.under(box.script(KEEPER + before + "time.sleep(0.5)\nos.kill(keeper(), signal.SIGKILL)\ntime.sleep(0.5)\nsys.exit(7)\n"))
        same(run.status, 7, "status")
        again = subprocess.run([box.cuwhy, "explain", "--json", run.folder], env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
        same((again.returncode, again.stderr), (1, ""), "status and stderr of explain, which said %.300s" % again.stdout)
        same(json.loads(again.stdout)["cause"], "unknown", "cause")
        done = subprocess.run([box.cuwhy, "run", "--force", "--out", run.folder, "true"], env=box.env(), capture_output=True, text=True,
                              timeout=PATIENCE)
        same((done.returncode, done.stderr), (0, ""), "the next run into the same folder")


def rule__what_a_run_killed_at_its_start_left_is_a_recording_without_an_answer(box):
    """Nothing but the mark, or beside it a file that was being written."""
    folder = os.path.join(box.scratch, "left")
    os.mkdir(folder)
    for name in (".cuwhy", "6086-1.cwr.1glKFe", "run.json.aBcDeF"):
        open(os.path.join(folder, name), "wb").close()
        again = subprocess.run([box.cuwhy, "explain", "--json", folder], env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
        same((again.returncode, again.stderr), (1, ""), "status and stderr of explain, which said %.300s" % again.stdout)
        same(json.loads(again.stdout)["cause"], "unknown", "cause")


def rule__a_keeper_without_memory_costs_the_verdict_only(box):
    run = box.under(box.script(KEEPER + "resource.prlimit(keeper(), resource.RLIMIT_AS, (1 << 20, 1 << 20))\n" + FAILING))
    same(run.status, 1, "status")
    unknown(run, "out of memory")


def rule__a_keeper_that_is_stuck_is_given_up(box):
    runtime = os.path.join(box.scratch, "runtime")
    os.mkdir(runtime, 0o700)
    run = box.under(box.script(KEEPER + "os.kill(keeper(), signal.SIGSTOP)\nsys.exit(7)\n"), CUWHY_JUDGE_SECONDS="1",
                    XDG_RUNTIME_DIR=runtime)
    same(run.status, 7, "status")
    unknown(run, "stuck for 1 s")
    same(os.listdir(runtime), [], "files in the runtime folder")


def rule__in_words_a_lost_verdict_is_one_line(box):
    argv = [box.cuwhy, "run"] + box.script(KEEPER + "kill_keeper()\nsys.exit(7)\n")
    done = subprocess.run(argv, env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
    same(done.returncode, 7, "status")
    assert done.stderr.startswith("cuwhy: whether CUDA failed is unknown: ") and done.stderr.count("\n") == 1, done.stderr


def rule__a_signal_is_passed_on_while_the_keeper_is_busy(box):
    text = KEEPER + """
signal.signal(signal.SIGTERM, lambda *_: (os.kill(keeper(), signal.SIGCONT), sys.exit(9)))
os.kill(keeper(), signal.SIGSTOP)
os.kill(sup, signal.SIGTERM)
time.sleep(600)
"""
    same(box.under(box.script(text)).status, 9, "status")


def rule__a_killed_supervisor_leaves_nothing_of_cuwhy(box):
    runtime = os.path.join(box.scratch, "runtime")
    os.mkdir(runtime, 0o700)
    argv = [box.cuwhy, "run"] + box.script(KEEPER + "print(keeper(), flush=True)\nsys.stdin.read()\n")
    child = subprocess.Popen(argv, env=dict(box.env(), XDG_RUNTIME_DIR=runtime), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    keeper = int(child.stdout.readline())
    child.kill()
    child.wait()
    wait_until(lambda: not os.path.exists("/proc/%d" % keeper), "the keeper's end")     # the program goes on
    child.communicate()
    same(glob.glob(os.path.join(runtime, "*", "s")), [], "sockets")


def rule__a_stopped_keeper_ends_with_its_supervisor(box):
    argv = [box.cuwhy, "run"] + box.script(KEEPER + "pid = keeper()\nos.kill(pid, signal.SIGSTOP)\nprint(pid, flush=True)\ntime.sleep(3)\n")
    child = subprocess.Popen(argv, env=box.env(), stdout=subprocess.PIPE, text=True)
    keeper = int(child.stdout.readline())
    child.kill()
    child.wait()
    wait_until(lambda: not os.path.exists("/proc/%d" % keeper), "the keeper's end")


def rule__a_program_that_closes_its_output_has_closed_it(box):
    child = subprocess.Popen([box.cuwhy, "run", "sh", "-c", "echo out; exec >&-; read x; exit 3"], env=box.env(),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    same(read_until(child.stdout.fileno(), [b"never"]), b"out\n", "stdout")
    same(child.poll(), None, "status while the program goes on")
    child.stdin.close()
    same(child.wait(PATIENCE), 3, "status")


def rule__a_stopped_cuwhy_neither_slows_programs_nor_keeps_their_memory(box):
    text = KEEPER + """
import subprocess
took = {signal.SIGCONT: 0, signal.SIGSTOP: 0}
for i in range(10):
    for state in took:      # in turn, because the load of a machine changes
        os.kill(sup, state)
        began = time.monotonic()
        subprocess.run([sys.executable, sys.argv[0], "child"])
        took[state] += time.monotonic() - began
began = time.time()
folder = "/proc/%d/fd/" % keeper()
def is_memory(name):
    try:
        return "memfd" in os.readlink(folder + name)
    except FileNotFoundError:
        return False        # closed just now
while any(is_memory(name) for name in os.listdir(folder)) and time.time() < began + 120:
    time.sleep(0.02)
kept = [name for name in os.listdir(folder) if is_memory(name)]
os.kill(sup, signal.SIGCONT)
print(len(kept), took[signal.SIGSTOP] < 2 * took[signal.SIGCONT] + 5)      # a recorder that waits gives up after a second
"""
    run = box.under(box.script("import sys, cudrv\nif sys.argv[1:]: cudrv.init(); sys.exit()\n" + text))
    same(run.out.strip(), "0 True", "recordings kept, time")


def rule__a_keeper_that_is_stopped_does_not_make_every_thread_wait(box):
    text = KEEPER + """
import threading, cudrv
cudrv.init()
kernel = cudrv.kernel("nop")
os.kill(keeper(), signal.SIGSTOP)
took, gate = [], threading.Event()
def work():
    began = time.time()
    try:
        cudrv.synchronize()
    except Exception:
        pass        # this thread has no context; it is recorded all the same
    took.append(time.time() - began)
    gate.wait()
threads = [threading.Thread(target=work) for _ in range(100)]
for i, t in enumerate(threads):
    t.start()
    while len(took) <= i:
        time.sleep(0.001)
gate.set()
os.kill(keeper(), signal.SIGCONT)
print(sum(took) < 50)      # one that waits for its turn gives up after a second
"""
    argv = ["unshare", "-r", "-n", "sh", "-c", 'echo 2 > /proc/sys/net/core/somaxconn && exec "$@"', "sh",
            box.cuwhy, "run", "--no-core-dump", "--gpu", "sim:tiny"] + box.script(text)
    done = subprocess.run(argv, env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
    if "unshare" in done.stderr or "somaxconn" in done.stderr:
        raise Skip("no network namespaces")
    same((done.returncode, done.stdout.strip()), (0, "True"), "status, 100 threads in less than 50 s")


def rule__a_keeper_that_stays_stopped_is_given_up_while_the_program_runs(box):
    text = KEEPER + """
stopped = keeper()
os.kill(stopped, signal.SIGSTOP)
while name(stopped):
    time.sleep(0.1)
sys.exit(7)
"""
    run = box.under(box.script(text), CUWHY_JUDGE_SECONDS="1")
    same(run.status, 7, "status")
    unknown(run, "stuck for 1 s")


FAILING_CHILD = """
import os, cudrv


def failing_child():        # forked: starting an interpreter each takes minutes on a loaded machine
    child = os.fork()
    if child == 0:
        cudrv.init()
        try:
            cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))
        except cudrv.CudaError:
            os._exit(1)
    return child


"""
FAMILY = FAILING_CHILD + """
for _ in range(60):
    child = failing_child()
    os.waitpid(child, 0)
os._exit(1)
"""


def rule__ended_processes_cost_no_descriptors(box):
    argv = [box.cuwhy, "run", "--json", "--gpu", "sim:tiny", "--out", os.path.join(box.scratch, "o")] + box.script(FAMILY)
    done = subprocess.run(argv, env=box.env(), capture_output=True, timeout=PATIENCE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)))
    same(done.returncode, 1, "status")
    run = json.load(open(os.path.join(box.scratch, "o", "run.json")))
    same((len(run["processes"]), run["lost_segments"]), (60, 0), "processes, lost segments")


TOGETHER = """
import os, sys, cudrv
told, tell = os.pipe()
wait, go = os.pipe()
n = int(sys.argv[1])
for _ in range(n):      # all of them live until the last one has failed, and end together
    if os.fork() == 0:
        os.close(go)
        cudrv.init()
        try:
            cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))
        except cudrv.CudaError:
            os.write(tell, b"x")
        os.read(wait, 1)
        os._exit(1)
for _ in range(n):
    os.read(told, 1)
os.close(go)
for _ in range(n):
    os.wait()
os._exit(1)
"""


def together(box, n, files):
    """So many processes at once, cuwhy and they with so many descriptors each: run.json and verdict.json."""
    out = os.path.join(box.scratch, "o")
    argv = [box.cuwhy, "run", "--json", "--no-core-dump", "--gpu", "sim:tiny,memory=64G", "--force", "--out", out] + box.script(TOGETHER) + [str(n)]
    done = subprocess.run(argv, env=box.env(), capture_output=True, timeout=PATIENCE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    same(done.returncode, 1, "status")
    return [json.load(open(os.path.join(out, name))) for name in ("run.json", "verdict.json")]


def rule__of_more_processes_than_descriptors_none_is_lost(box):
    run, verdict = together(box, 60, 64)
    same((len(run["processes"]), run["lost_segments"]), (60, 0), "processes, lost segments")
    same((verdict["cause"], len(verdict["others"]), verdict.get("warning")), ("launch-config-grid-limit", 59, None), "cause, others, warning")


def rule__processes_for_which_there_are_no_descriptors_are_told_of(box):
    run, verdict = together(box, 12, 22)    # not enough for a single one
    same((len(run["processes"]), verdict["cause"]), (0, "unknown"), "processes, cause")
    assert "ulimit -n" in verdict["warning"] and "ulimit -n" in verdict["title"], verdict


UNRECORDED = {
    "no descriptors": ("resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))", "no file descriptors left"),
    "a file size limit": ("resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))", "file size limit"),
    "another user": ("os.setuid(65534)", "another user"),
}


def rule__a_limit_of_file_sizes_takes_no_memory_from_a_simulated_gpu(box):
    """A GPU's memory is no file. What processes share is one here: then it is refused, but not because memory is out."""
    program = box.program("file_limit", "-lcuda")
    for limit, shared in (([], "for others 7000, IPC 0"), (["9000000"], "for others 7000, IPC 0"), (["100"], "for others 6696, IPC 304")):
        for run in (box.plain_sim([program] + limit), box.under([program] + limit)):
            same((run.status, run.out), (1, "two mappings 7000; %s\n" % shared), "status and stdout with the limit %s" % limit)
    unknown(run, "file size limit")


def rule__a_program_that_died_unrecorded_has_an_unknown_cause(box):
    for what, (before, words) in UNRECORDED.items():
        if os.geteuid() != 0 and ("setuid" in before or "chroot" in before):
            continue
        argv = box.script("import os, resource, shutil, cudrv\n" + before + FAILING)
        run = box.under(argv, out=False)
        same(run.status, 1, "status with " + what)
        verdict = unknown(run, words)
        same(verdict["process"]["pid"] > 0, True, "a process")
        words_only = subprocess.run([box.cuwhy, "run", "--gpu", "sim:tiny"] + argv, env=box.env(), capture_output=True, text=True,
                                    timeout=PATIENCE)
        lines = [l for l in words_only.stderr.splitlines() if l.startswith("cuwhy: whether CUDA failed is unknown: ")]
        same(len(lines), 1, "lines about " + what)


def rule__a_program_whose_folder_or_root_is_gone_is_recorded(box):
    """The socket also has a name that no file system holds."""
    befores = ["shutil.rmtree(os.path.dirname(os.environ['CUWHY_SOCK']), True)"] + (["os.chroot('/proc')"] if os.geteuid() == 0 else [])
    for before in befores:
        run = box.under(box.script("import os, shutil, cudrv\n" + before + FAILING), out=False)
        verdict = json.loads(run.err.splitlines()[-1])
        same((run.status, verdict["cause"]), (1, "launch-config-grid-limit"), "status, cause after " + before)


def rule__a_child_that_died_unrecorded_makes_the_cause_unknown(box):
    child = "import resource, cudrv\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n" + FAILING
    text = "import subprocess, sys\nimport cudrv\ncudrv.init()\n" \
           "sys.exit(subprocess.run([sys.executable, '-c', %r], stderr=subprocess.DEVNULL).returncode)\n" % child
    run = box.under(box.script(text))
    unknown(run, "no file descriptors left")
    again = subprocess.run([box.cuwhy, "explain", "--json", run.folder], env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
    verdict = json.loads(again.stdout)
    assert verdict["cause"] == "unknown" and "no file descriptors left" in verdict["title"], verdict


def rule__a_recorded_failure_outweighs_an_unrecorded_process(box):
    child = "import resource, cudrv\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n" + FAILING
    text = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', %r], stderr=subprocess.DEVNULL)\n" % child + FAILING
    verdict = json.loads(box.under(box.script(text)).err.splitlines()[-1])
    same(verdict["cause"], "launch-config-grid-limit", "cause")
    assert "could not be recorded" in verdict["warning"], verdict["warning"]


def rule__a_program_that_ended_well_unrecorded_has_not_failed(box):
    argv = box.script("import resource, cudrv\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\ncudrv.init()\n")
    run = box.under(argv, out=False)
    verdict = json.loads(run.err.splitlines()[-1])
    same((run.status, verdict["cause"]), (0, "none"), "status, cause")
    assert "could not be recorded" in verdict["warning"], verdict["warning"]
    done = subprocess.run([box.cuwhy, "run", "--gpu", "sim:tiny"] + argv, env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
    same((done.returncode, done.stderr), (0, ""), "status, stderr")


def rule__a_program_that_failed_as_another_user_has_an_unknown_cause(box):
    if os.geteuid() != 0:
        raise Skip("needs root")
    argv = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "exit 3"]
    run = box.under(argv, gpu=None, out=False)
    same(run.status, 3, "status")
    unknown(run, "another user")


def rule__a_program_that_failed_where_nothing_can_be_recorded_has_an_unknown_cause(box):
    nowhere = os.path.join(box.scratch, "nowhere")
    argv = ["unshare", "-r", "-m", "sh", "-c",
            "for d in /tmp /dev/shm; do mount --bind $d $d && mount -o remount,ro,bind $d || exit; done; "
            "exec %s run --json sh -c 'exit 3'" % box.cuwhy]
    done = subprocess.run(argv, env=dict(box.env(), XDG_RUNTIME_DIR=nowhere, TMPDIR=nowhere), capture_output=True, text=True, timeout=PATIENCE)
    if "{" not in done.stderr:
        raise Skip("no mount namespaces")
    same(done.returncode, 3, "status")
    verdict = json.loads(done.stderr.splitlines()[-1])
    same(verdict["cause"], "unknown", "cause")
    assert "nothing was recorded" in verdict["title"], verdict["title"]


def rule__a_program_linked_with_a_sanitizer_runs_unrecorded(box):
    """Its runtime refuses to start behind another library."""
    source, program = os.path.join(box.scratch, "asan.c"), os.path.join(box.scratch, "asan")
    with open(source, "w", encoding="ascii") as stream:
        stream.write('#include <stdio.h>\nint main(void) { puts("runs"); return 3; }\n')
    if subprocess.run(["gcc", "-fsanitize=address", "-o", program, source], capture_output=True).returncode:
        raise Skip("no AddressSanitizer")
    for argv, env in (([program], {}), (["asan"], {"PATH": box.scratch + ":" + os.environ["PATH"]})):
        run = box.under(argv, gpu=None, out=False, ASAN_OPTIONS="detect_leaks=0", **env)
        same((run.status, run.out), (3, "runs\n"), "status and output (%s)" % run.err[-300:])
        unknown(run, "sanitizer")


def rule__a_preloaded_sanitizer_is_left_alone(box):
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if "/" not in asan:
        raise Skip("no AddressSanitizer")
    run = box.under(["sh", "-c", "exit 3"], gpu=None, out=False, LD_PRELOAD=asan, ASAN_OPTIONS="detect_leaks=0")
    same(run.status, 3, "status")
    unknown(run, "sanitizer")


CROWD = FAILING_CHILD + """
for _ in range(12):
    for child in [failing_child() for _ in range(20)]:
        os.waitpid(child, 0)
"""


def rule__children_are_recorded_while_others_are_judged(box):
    run = box.under(box.script(CROWD), "--no-core-dump")
    same((run.status, run.out), (0, ""), "status and output")
    same(len(box.parts(run)), 240, "recordings")
