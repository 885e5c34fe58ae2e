# SPDX-License-Identifier: Apache-2.0
"""What a program must never notice: status, streams, environment, signals, terminals."""
import glob
import json
import os
import pty
import select
import signal
import stat
import subprocess
import time

from toolbox import BuildError, PATIENCE, Skip, alone, same

FAILING = """
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1, 70000), (1,))
"""


def rule__exit_status_is_the_programs_own(box):
    for code in (0, 1, 42, 255):
        run = box.under(["/bin/sh", "-c", "exit %d" % code], gpu=None)
        same(run.status, code, "status")
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL):
        run = box.under(["/bin/sh", "-c", "kill -%d $$" % number], gpu=None)
        same(run.status, 128 + number, "status after signal %d" % number)


def rule__stdin_and_stdout_pass_through_untouched(box):
    data = bytes(range(256)) * 4000
    done = subprocess.run([box.cuwhy, "run", "cat"], input=data, capture_output=True,
                          env=box.env(), timeout=PATIENCE)
    same(done.returncode, 0, "status")
    same(done.stdout, data, "bytes through cat")
    same(done.stderr, b"", "stderr")


def rule__descriptors_are_those_of_the_plain_program(box):
    argv = ["/bin/sh", "-c", "ls /proc/self/fd | wc -l"]
    same(box.under(argv, gpu=None).out, box.plain(argv).out, "open descriptors")


def rule__environment_differs_only_by_our_own_names(box):
    def lines(run):
        return dict(line.split("=", 1) for line in run.out.split("\0") if "=" in line)
    plain = lines(box.plain(["env", "-0"]))
    under = lines(box.under(["env", "-0"], gpu=None))
    changed = {k for k in set(plain) | set(under) if plain.get(k) != under.get(k)}
    ours = {k for k in changed if k.startswith("CUWHY_") or k == "LD_PRELOAD"}
    same(changed - ours, set(), "changed variables")
    assert "LD_PRELOAD" in changed, "the recorder is not preloaded"


def rule__a_users_own_preload_is_kept(box):
    other = box.library("preload_quiet")
    run = box.under(["/bin/sh", "-c", "echo $LD_PRELOAD"], gpu=None, LD_PRELOAD=other)
    assert run.out.strip().endswith(":" + other) or run.out.strip().endswith(" " + other), run.out


def rule__nothing_is_left_when_nothing_failed(box):
    state, runtime = (os.path.join(box.scratch, n) for n in ("state", "runtime"))
    os.mkdir(runtime, 0o700)
    argv = box.script("import cudrv\ncudrv.init()\ncudrv.alloc(64)\n")
    run = box.under(argv, out=False, XDG_RUNTIME_DIR=runtime)
    same(run.status, 0, "status")
    same(glob.glob(os.path.join(state, "*")), [], "recordings")
    same(os.listdir(runtime), [], "files in the runtime folder")


@alone      # the mask is that of the whole process: folders that other tests make meanwhile would be open to all
def rule__a_failure_leaves_a_private_recording(box):
    old = os.umask(0)
    try:
        run = box.under(box.script(FAILING), out=False)
    finally:
        os.umask(old)
    same(run.status, 1, "status")
    folders = glob.glob(os.path.join(box.scratch, "state", "*"))
    same(len(folders), 1, "recordings")
    same(stat.S_IMODE(os.stat(folders[0]).st_mode), 0o700, "mode of the folder")
    for name in os.listdir(folders[0]):
        mode = stat.S_IMODE(os.stat(os.path.join(folders[0], name)).st_mode)
        same(mode, 0o600, "mode of " + name)


def rule__the_socket_is_in_a_private_folder(box):
    run = box.under(["/bin/sh", "-c", 'stat -c %a "$(dirname "$CUWHY_SOCK")"'], gpu=None)
    same(run.out.strip(), "700", "mode of the socket's folder")


def read_until(master, words):
    """Reads from a pseudo-terminal or a pipe until one of the words appears, or to its end."""
    text, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end and not any(w in text for w in words):
        if select.select([master], [], [], 0.1)[0]:
            try:
                more = os.read(master, 4096)
            except OSError:     # the end of a terminal
                break
            if not more:
                break
            text += more
    return text


COUNTER = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
print("ready", sys.stdin.isatty(), sys.stdout.isatty(), flush=True)
while not seen:
    time.sleep(0.05)
time.sleep(0.5)     # for a second one
print("signals", len(seen), flush=True)
sys.exit(5)
"""


def on_terminal(box, act, before=()):
    """Runs COUNTER under cuwhy on a terminal of its own; act(master, pid) disturbs it. `before`: what starts cuwhy."""
    argv = list(before) + [box.cuwhy, "run"] + box.script(COUNTER)
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, box.env())
    text = read_until(master, [b"ready True True", b"False"])
    act(master, pid)
    text += read_until(master, [b"never"])
    _, status = os.waitpid(pid, 0)
    os.close(master)
    return text.decode(), os.waitstatus_to_exitcode(status)


def rule__ctrl_c_reaches_the_program_once(box):
    text, status = on_terminal(box, lambda master, pid: os.write(master, b"\x03"))
    assert "ready True True" in text, text
    assert "signals 1" in text, text
    same(status, 5, "status")


def without_proc():
    """What starts a command as in a chroot or a sandbox where nobody has mounted /proc."""
    argv = ["unshare", "-r", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run(argv + ["sh", "-c", "! [ -e /proc/self ]"], capture_output=True).returncode:
        raise Skip("no mount namespaces")
    return argv


def rule__without_proc_a_failure_has_its_cause(box):
    out = os.path.join(box.scratch, "out")
    argv = without_proc() + [box.cuwhy, "run", "--json", "--gpu", "sim:tiny", "--out", out] + box.script(FAILING)
    done = subprocess.run(argv, env=box.env(), capture_output=True, text=True, timeout=PATIENCE)
    same(done.returncode, 1, "status")
    verdict = json.loads(done.stderr.splitlines()[-1])
    same((verdict["cause"], verdict["certainty"]), ("launch-config-grid-limit", "certain"), "cause")


def rule__without_proc_ctrl_c_reaches_the_program_once_and_a_signal_is_passed_on(box):
    for act in (lambda master, pid: os.write(master, b"\x03"), lambda master, pid: os.kill(pid, signal.SIGTERM)):
        text, status = on_terminal(box, act, without_proc())
        assert "signals 1" in text, text
        same(status, 5, "status")


def rule__a_signal_to_cuwhy_is_passed_on(box):
    text, status = on_terminal(box, lambda master, pid: os.kill(pid, signal.SIGTERM))
    assert "signals 1" in text, text
    same(status, 5, "status")


def rule__a_child_with_a_clean_environment_runs_as_always(box):
    for argv in (["env", "-i", "/bin/sh", "-c", "echo out; echo err >&2; exit 3"],
                 ["env", "-u", "CUWHY_SOCK", "/bin/sh", "-c", "echo out; echo err >&2; exit 3"]):
        plain, under = box.plain(argv), box.under(argv, gpu=None, out=False)
        same((under.status, under.out), (plain.status, plain.out), "status and stdout")
        err = "".join(l for l in under.err.splitlines(True) if not l.startswith("{"))
        same(err, plain.err, "stderr")


def rule__a_32_bit_child_runs_with_the_same_stderr(box):
    try:
        program = box.program("hello32", "-m32", "-nostdlib", "-fno-stack-protector", "-fPIE", "-pie",
                              "-Wl,--dynamic-linker=/lib/ld-linux.so.2")
    except BuildError:
        raise Skip("this compiler cannot build 32-bit programs")
    if not os.path.exists("/lib/ld-linux.so.2"):
        raise Skip("no 32-bit loader")
    plain = box.plain([program])
    same((plain.status, plain.out), (7, "32 bits\n"), "without cuwhy")
    for gpu in (None, "sim:tiny"):      # a simulated one has an audit library, too
        under = box.under([program], gpu=gpu, out=False)
        same((under.status, under.out), (plain.status, plain.out), "status and stdout")
        err = "".join(l for l in under.err.splitlines(True) if not l.startswith("{"))
        same(err, plain.err, "stderr")


def rule__a_set_uid_program_is_left_alone(box):
    program = box.program("where_am_i")
    target = os.path.join(box.scratch, "setuid")
    os.chmod(box.scratch, 0o755)
    if os.geteuid() != 0:
        raise Skip("only root can make a set-uid program of another user")
    with open(program, "rb") as source, open(target, "wb") as copy:
        copy.write(source.read())
    os.chown(target, 65534, 65534)
    os.chmod(target, 0o4755)
    plain = box.plain([target])
    if "secure 1" not in plain.out:
        raise Skip("set-uid has no effect on this file system")
    under = box.under([target], gpu=None, out=False)
    same(under.out, plain.out, "what the set-uid program sees")
    assert "recorder 0" in under.out, under.out


def rule__programs_started_in_every_way_are_followed(box):
    argv = box.script("""
import os, sys
ways = ["spawn", "exec", "vfork", "fail"]
step = int(os.environ.get("STEP", "0"))
os.environ["STEP"] = str(step + 1)
again = [sys.executable, __file__]
if ways[step] == "spawn":
    pid = os.posix_spawn(again[0], again, os.environ)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
if ways[step] == "exec":
    os.execv(again[0], again)
if ways[step] == "vfork":
    import subprocess
    sys.exit(subprocess.run(again).returncode)
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (4096,))
""")
    run = box.under(argv)
    same(run.status, 1, "status")
    same(box.verdict(run)["cause"], "launch-config-block-limit", "cause")


def rule__the_verdict_of_a_child_is_printed_when_it_ends(box):
    argv = box.script("""
import subprocess, sys
if len(sys.argv) > 1:
    import cudrv
    cudrv.init()
    cudrv.alloc(1 << 40)
subprocess.run([sys.executable, __file__, "child"])
sys.stdin.read()
""")
    run = subprocess.Popen([box.cuwhy, "run", "--gpu", "sim:tiny", "--"] + argv, env=box.env(), stdin=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    text = read_until(run.stderr.fileno(), [b"cuwhy"])
    same(run.poll(), None, "status while the program goes on")
    _, rest = run.communicate(timeout=PATIENCE)
    same(run.returncode, 0, "status")
    assert b"cuwhy" in text, (text, rest)
