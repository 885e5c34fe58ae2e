# SPDX-License-Identifier: Apache-2.0
"""One program, with and without cuwhy: what it did, and what cuwhy left behind."""
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

PLAIN_SECONDS = 60
UNDER_SECONDS = 120
EXPLAIN_SECONDS = 60
GONE_SECONDS = 20       # for processes of cuwhy, once the program is gone
JUDGE_SECONDS = "3"     # a stopped keeper is given up after this long


def become_subreaper():
    """Orphans of the programs become children of this process: whatever is left can be seen, and waited for."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as stream:
            return [int(word) for word in stream.read().split()]
    except OSError:
        return []


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def all_gone(seconds):
    """Reaps everything that the last program started; what is still there after so many seconds is named and ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return []
    left = ["%s (%d)" % (name_of(pid), pid) for pid in children(os.getpid())]
    while children(os.getpid()):
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    return left


class Outcome:
    """status as Popen has it; 'hung' if it had to be killed."""

    def __init__(self, argv, env, cwd, limit, closed=(), files=0, kill=None):
        def prepare():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            for fd in closed:
                os.close(fd)

        with tempfile.TemporaryFile(dir=cwd) as out, tempfile.TemporaryFile(dir=cwd) as err:
            began = time.monotonic()
            child = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                     preexec_fn=prepare)
            if kill:
                kill(child)
            try:
                self.status = child.wait(limit)
            except subprocess.TimeoutExpired:
                self.status = "hung"
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            self.seconds = time.monotonic() - began
            self.left = all_gone(GONE_SECONDS)
            out.seek(0)
            err.seek(0)
            self.out, self.err = (f.read().decode("utf-8", "replace") for f in (out, err))


def ours(line):
    return line.startswith(("cuwhy: ", '{"schema"'))


def is_subsequence(some, every):
    rest = iter(every)
    return all(line in rest for line in some)


def is_unmarked(folder):
    """Left by a kill between the folder's making and its marking: empty, or with a mark that says nothing. It stays, because
    cuwhy deletes nothing that does not carry its mark."""
    inside = os.listdir(folder) if os.path.isdir(folder) else None
    return inside == [] or inside == [".cuwhy"] and os.path.getsize(os.path.join(folder, ".cuwhy")) == 0


class Guest:
    def __init__(self, place, program, scratch, plant=""):
        self.place, self.program, self.plant = place, program, plant
        self.scratch = tempfile.mkdtemp(prefix="program-", dir=scratch)
        self.home = os.path.join(scratch, "home")   # shared: copies of the recorder go there
        self.wrong, self.opened, self.verdicts = [], 0, []
        for name in ("runtime", "tmp", "state", "work"):
            os.mkdir(os.path.join(self.scratch, name), 0o700)

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUWHY", "LD_"))}
        env.update(XDG_RUNTIME_DIR=self.path("runtime"), TMPDIR=self.path("tmp"), CUWHY_DIR=self.path("state"), XDG_STATE_HOME=self.home,
                   CUWHY_JUDGE_SECONDS=JUDGE_SECONDS, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0", NO_COLOR="1", CUWHY_WRITES_MODE="real", **more)
        return env

    def plain(self):
        where = self.place.small if self.program.small else self.place.sim
        return Outcome([self.place.actor] + self.program.words, self.env(LD_LIBRARY_PATH=where, CUWHY_SIM="tiny"), self.path("work"),
                       PLAIN_SECONDS, self.program.closed, self.program.files)

    def command(self):
        p = self.program
        cuwhy = self.place.cuwhy.get(p.build, self.place.cuwhy["plain"])
        gpu = [] if p.small else ["--gpu", "sim:tiny"]
        return [cuwhy, "run"] + ([] if p.text else ["--json"]) + gpu + p.options + (["--out", self.path("out")] if p.out else []) + [
            "--", self.place.actor] + p.words

    def under(self, kill=None):
        more = {"LD_LIBRARY_PATH": self.place.small} if self.program.small else {}
        run = Outcome(self.command(), self.env(**more), self.path("work"), UNDER_SECONDS, self.program.closed, self.program.files, kill)
        if self.plant == "output":
            run.out = run.out[:-1]
        elif self.plant == "status":
            run.status = 77
        elif self.plant == "folder":
            os.mkdir(self.path("runtime", "cuwhy-planted"))
        elif self.plant == "process":
            run.left.append("planted")
        elif self.plant == "recording":
            os.mkdir(self.path("state", "planted"))
            with open(self.path("state", "planted", "run.json"), "w", encoding="ascii") as stream:
                stream.write("{")
        return run

    def bad(self, text):
        self.wrong.append(text)

    # ---- the same program without cuwhy ---------------------------------------------------------------

    def compare(self, plain, run):
        p = self.program
        expected = -signal.SIGKILL if p.supervisor_dies else plain.status
        if run.status != expected:
            self.bad("status %s, expected %s; stderr %s" % (run.status, expected, run.err[-300:]))
        if self.shown(run.out) != self.shown(plain.out):
            self.bad("stdout %r, without cuwhy %r" % (run.out[-400:], plain.out[-400:]))
        theirs = [line for line in run.err.splitlines() if not ours(line)]
        same = is_subsequence(plain.err.splitlines(), theirs) if p.text else theirs == plain.err.splitlines()
        if not same:
            self.bad("stderr %r, without cuwhy %r" % ("\n".join(theirs)[-400:], plain.err[-400:]))

    def shown(self, out):
        """With --hang-after the driver has a descriptor of its own, for the dump on request."""
        return re.sub("files [0-9]+", "files", out) if "--hang-after" in self.program.options else out

    def check_cause(self, run):
        p = self.program
        if p.text or 2 in p.closed or p.supervisor_dies:
            return
        try:
            cause = json.loads(run.err.splitlines()[-1])["cause"]
        except (ValueError, IndexError, KeyError):
            self.bad("no verdict on stderr: %r" % run.err[-300:])
            return
        alone = not set(p.words) & {"fork", "spawn", "vfork", "daemon", "exec"}    # a child may fail on its own
        if p.ends == "well" and alone and cause != "none" and not (cause == "unknown" and p.cannot_record):
            self.bad("ended well, cause %s" % cause)
        if p.ends == "cuda" and cause == "none":
            self.bad("an error of CUDA ended it, cause none")

    # ---- what is left ---------------------------------------------------------------------------------

    def recordings(self):
        found = [self.path("state", name) for name in os.listdir(self.path("state")) if not name.startswith(".")] + [self.path("out")]
        return sorted(f for f in found if os.path.isdir(f) and os.listdir(f))

    def explain(self, folder, build="plain"):
        try:
            done = subprocess.run([self.place.cuwhy.get(build, self.place.cuwhy["plain"]), "explain", "--json", folder], env=self.env(),
                                  capture_output=True, text=True, timeout=EXPLAIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.bad("explain took more than %d s" % EXPLAIN_SECONDS)
            return
        self.opened += 1
        try:
            cause = json.loads(done.stdout)["cause"]
        except (ValueError, KeyError):
            cause = None
        self.verdicts.append(cause)
        if done.returncode not in (0, 1) or done.stderr or not cause:
            self.bad("explain of %s: status %d, %s %s" % (sorted(os.listdir(folder)), done.returncode, done.stderr[:300], done.stdout[:300]))

    def check_left(self, run, killed):
        if run.left:
            self.bad("processes left: " + ", ".join(run.left))
        if killed:
            # what a killed run leaves, or one that a daemon outlives, the next one cleans up
            subprocess.run([self.place.cuwhy["plain"], "run", "true"], env=self.env(), capture_output=True, timeout=UNDER_SECONDS)
        for name in ("runtime", "tmp", "work"):
            left = [f for f in os.listdir(self.path(name)) if not (killed and is_unmarked(self.path(name, f)))]
            if left:
                self.bad("left in %s: %s" % (name, ", ".join(left)))

    # ---- all of it ------------------------------------------------------------------------------------

    def killer(self, seconds):
        """Kills a part of the run at its moment, wherever that part has got to."""
        p = self.program

        def kill(child):
            time.sleep(p.kill_at * seconds)
            target = {"supervisor": [child.pid]}.get(p.kill, [])
            for pid in children(child.pid):
                if (name_of(pid) == "cuwhy-keeper") == (p.kill == "keeper") and p.kill in ("keeper", "program"):
                    target.append(pid)
            try:
                for pid in target or [child.pid]:
                    os.kill(pid, signal.SIGKILL)
                if p.kill == "group":
                    os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass    # it was faster
        return kill

    def soak(self):
        p = self.program
        plain = self.plain()
        if plain.status == "hung" or plain.left:
            self.bad("without cuwhy: %s, left %s" % (plain.status, plain.left))
            return
        run = self.under(self.killer(2 * plain.seconds + 0.1) if p.kill else None)
        if run.status == "hung":
            self.bad("still running after %d s" % UNDER_SECONDS)
        if not p.kill:
            self.compare(plain, run)
            self.check_cause(run)
        for folder in self.recordings():
            self.explain(folder, "asan" if p.seed % 3 == 0 else "plain")
        self.check_left(run, p.kill or p.supervisor_dies or "daemon" in p.words)

    def release(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
