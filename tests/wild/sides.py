# SPDX-License-Identifier: Apache-2.0
"""Runs a command without cuwhy or under it, and never longer than it makes progress."""
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

PLUGIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plugin")
PATIENCE = 10       # seconds between asking a process to end and killing it
START = 240         # more seconds until the first line: imports and collection


class Abandoned(Exception):
    """Time is up, or the user pressed Ctrl-C: what was running does not count."""


class Result:
    def __init__(self, status, seconds, late, output):
        self.status, self.seconds, self.late, self.output = status, seconds, late, output

    def end(self):
        """How the process ended, in the words of an outcome."""
        if self.late:
            return "timed out"
        if self.status > 128:
            try:
                return "crashed: " + signal.Signals(self.status - 128).name
            except ValueError:
                pass
        return "status %d" % self.status


def end_group(process):
    for number, patience in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        break
    try:
        os.killpg(process.pid, signal.SIGKILL)      # what ignored the first
    except ProcessLookupError:
        pass


class Side:
    """name: "plain" or "cuwhy". Caches of compiled kernels live in `cache`: neither side gets what the other compiled."""

    def __init__(self, name, setup, stop):
        self.name, self.setup, self.stop = name, setup, stop
        self.cache = os.path.join(setup.scratch, name)
        self.lock = threading.Lock()
        os.makedirs(self.cache, exist_ok=True)

    def copy_of(self, folder):
        """This side's copy of a folder of WILD: tests write files beside them."""
        copy = os.path.join(self.cache, "src", folder)
        with self.lock:
            if not os.path.exists(copy):
                shutil.copytree(os.path.join(self.setup.wild, folder), copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return copy

    def environment(self, folder, wanted):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUWHY", "WILD", "PYTEST"))}
        if self.setup.gpu and self.name == "plain":
            env.update(LD_LIBRARY_PATH=self.setup.simulated, CUWHY_SIM=self.setup.gpu.partition(":")[2] or "tiny")
        path = [PLUGIN, self.setup.site, env.get("PYTHONPATH")]
        env.update(NO_COLOR="1", TMPDIR=folder, PYTHONPATH=os.pathsep.join(p for p in path if p))
        env.update({k: v.format(cache=self.cache, wild=self.setup.wild) for k, v in wanted.items()})
        return env

    def command(self, argv, folder):
        if self.name == "plain":
            return argv
        gpu = ["--gpu", self.setup.gpu, "--writes=real"] if self.setup.gpu else []
        return [self.setup.cuwhy, "run", "--out", os.path.join(folder, "rec"), *gpu, *shlex.split(self.setup.options), "--", *argv]

    def run(self, argv, cwd, env, limit, stdout=None):
        """Ends it when nothing was written to env's WILD_REPORTS, or to STDOUT, for LIMIT seconds."""
        folder = tempfile.mkdtemp(prefix="r", dir=self.setup.scratch)      # short: paths of sockets have a limit
        watched = stdout or env.get("WILD_REPORTS", "")
        log = os.path.join(folder, "log")
        try:
            with open(log, "wb") as err, open(stdout or os.devnull, "ab") as out:
                began = moved = time.monotonic()
                process = subprocess.Popen(self.command(argv, folder), cwd=cwd, env=self.environment(folder, env), stdin=subprocess.DEVNULL,
                                           stdout=out if stdout else err, stderr=err, start_new_session=True)
                late, size = False, -1
                while process.poll() is None:
                    time.sleep(0.05)
                    now = os.path.getsize(watched) if os.path.exists(watched) else -1
                    if now != size:
                        size, moved = now, time.monotonic()
                    late = time.monotonic() - moved > limit + (START if size <= 0 else 0)
                    if late or self.stop():
                        end_group(process)
                        break
                seconds = time.monotonic() - began
            if self.stop() and not late:
                raise Abandoned
            status = process.returncode if process.returncode >= 0 else 128 - process.returncode
            with open(log, "rb") as stream:
                stream.seek(max(0, os.path.getsize(log) - 4000))
                return Result(status, seconds, late, stream.read().decode("utf-8", "replace"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def both(jobs, in_turn):
    """The results of two functions, run at the same moment or one after the other; an exception of either is raised."""
    results = [None, None]

    def one(index):
        try:
            results[index] = jobs[index]()
        except BaseException as error:  # noqa: B036: raised below, in the thread that asked
            results[index] = error

    threads = [threading.Thread(target=one, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
        if in_turn:
            thread.join()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
