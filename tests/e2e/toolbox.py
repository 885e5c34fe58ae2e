# SPDX-License-Identifier: Apache-2.0
"""What the tests of the recorder's rules share: starting programs, and reading their results."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time

import harness
from harness import PATIENCE

HERE = os.path.dirname(os.path.abspath(__file__))


class Skip(Exception):
    """This machine cannot run the test; the reason is printed."""


def real_python(path):
    """The interpreter itself, not a shell script that picks one: the tests count processes."""
    found = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True,
                           text=True)
    return os.path.realpath(found.stdout.strip() or path)


class BuildError(Exception):
    """A C program of the tests could not be compiled; the text is the compiler's."""


class Toolbox:
    """Passed to every test: where things are, and how to start a program."""

    def __init__(self, cuwhy, python, builder):
        self.cuwhy, self.python = os.path.abspath(cuwhy), python
        self.build, self.builder = os.path.dirname(self.cuwhy), builder
        self.recorder = os.path.join(self.build, "libcuwhy-rec.so")
        self.sim = os.path.join(self.build, "sim")
        self.scratch = None

    def fresh(self):
        """The same tools with another folder."""
        copy = Toolbox(self.cuwhy, self.python, self.builder)
        copy.scratch = tempfile.mkdtemp(prefix="cuwhy-rule-")
        return copy

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY") or k == "CUWHY_RULES_FIRED"}
        env.update(PYTHON=self.python, PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1",
                   CUWHY_DIR=os.path.join(self.scratch, "state"), XDG_STATE_HOME=os.path.join(self.scratch, "home"),
                   CUWHY_WRITES_MODE=harness.WRITES)
        env.update(more)
        return env

    def program(self, name, *flags):
        """Compiles programs/NAME.c; `-lcuda` links it with the simulated driver."""
        return self.builder.compile(os.path.join(HERE, "programs", name + ".c"), name, list(flags))

    def library(self, name, *flags):
        return self.builder.compile(os.path.join(HERE, "programs", name + ".c"), name + ".so",
                                    ["-shared", "-fPIC"] + list(flags))

    def script(self, text):
        path = os.path.join(self.scratch, "program.py")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return [self.python, path]

    def plain(self, argv, timeout=PATIENCE, **env):
        return harness.Run(argv, self.env(**env), timeout)

    def plain_sim(self, argv, timeout=PATIENCE, gpu="tiny", **env):
        """On the simulated GPU without the recorder."""
        return self.plain(argv, timeout, LD_LIBRARY_PATH=self.sim, CUWHY_SIM=gpu, **env)

    def under(self, argv, *options, gpu="sim:tiny", out=True, timeout=PATIENCE, **env):
        """Under cuwhy; with `out`, run.folder is the recording."""
        folder = os.path.join(self.scratch, "recording")
        shutil.rmtree(folder, ignore_errors=True)
        command = [self.cuwhy, "run", "--json"] + (["--gpu", gpu] if gpu else []) + list(options)
        command += ["--out", folder] if out else []
        run = harness.Run(command + ["--"] + list(argv), self.env(**env), timeout)
        run.folder = folder
        if run.timed_out:
            raise AssertionError("still running after %d s\n%s" % (timeout, run.err))
        return run

    def verdict(self, run):
        with open(os.path.join(run.folder, "verdict.json"), encoding="utf-8") as stream:
            return json.load(stream)

    def parts(self, run):
        """Every part of a recording, as a dictionary of its header's numbers."""
        peek = self.builder.compile(os.path.join(HERE, "peek.c"), "peek")
        found = []
        by_pid = lambda path: int(os.path.basename(path).split("-")[0])    # as text, 10000 comes before 9999
        for path in sorted(glob.glob(os.path.join(run.folder, "*.cwr")), key=by_pid):
            shown = subprocess.run([peek, path], capture_output=True, text=True)
            assert shown.returncode == 0, "%s: damaged (%d)" % (path, shown.returncode)
            part = {k: int(v) for k, v in (line.split() for line in shown.stdout.splitlines())}
            part["path"] = path
            found.append(part)
        return found

    def peek(self, run, what):
        """Lines of peek's answer about every part of a recording."""
        peek, lines = self.builder.compile(os.path.join(HERE, "peek.c"), "peek"), []
        by_pid = lambda path: int(os.path.basename(path).split("-")[0])    # as text, 10000 comes before 9999
        for path in sorted(glob.glob(os.path.join(run.folder, "*.cwr")), key=by_pid):
            shown = subprocess.run([peek, path, what], capture_output=True, text=True)
            assert shown.returncode == 0, "%s: damaged (%d)" % (path, shown.returncode)
            lines += shown.stdout.splitlines()
        return lines

    def launches(self, run):
        """Stacks of the launches that are still in a ring, by the first size of their grids: "file:function:line",
        innermost frame first."""
        return {int(name): stack for name, *stack in (line.split() for line in self.peek(run, "launches"))}


def each(of):
    """A rule that holds for each of these is a test for each: they run beside each other, and a failure says which it is. `of`: names, or a
    function that knows them."""
    def mark(function):
        function.each = of
        return function
    return mark


def alone(function):
    """A rule whose test disturbs others: it runs after them."""
    function.alone = True
    return function


def run_rule(box, case, result):
    began = time.monotonic()
    mine = box.fresh()
    try:
        case.function(mine, *case.arguments)
        result.got = "holds"
    except Skip as reason:
        result.skip = str(reason)
    except Exception as error:  # a broken test is a failed test, never a stopped run
        result.got = "broken"
        result.bad("%s: %s" % (type(error).__name__, error))
    finally:
        shutil.rmtree(mine.scratch, ignore_errors=True)
    result.seconds = time.monotonic() - began
    return result


def wait_until(happened, what):
    """Waits for a fact, never for a time: what takes a millisecond here takes seconds elsewhere."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "%s: not after %d s" % (what, PATIENCE)
        time.sleep(0.02)


def same(a, b, what):
    assert a == b, "%s: %r, expected %r" % (what, a, b)
