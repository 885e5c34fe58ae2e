# SPDX-License-Identifier: Apache-2.0
"""Runs one program under `cuwhy run` and compares the verdict with what its header declares.

A case is a program (Python, C or shell) whose first comment lines say what cuwhy must answer:

    expect: cause=launch-config-grid-limit certainty=certain,likely exit=1
    expect-note: cause=device-ordinal-out-of-range      a handled failure
    expect-other: cause=oom-request-too-large           another process that failed later
    expect-silent: exit=0                               no verdict, no note, nothing on stderr
    needs: torch cupy nvcc     env: NAME=value          uses: helpers/nested.py
    same-output                alone                    args: one two
    gpu: sim:tiny              timeout: 60
    options: --hang-after 5s   skip: plain              options of cuwhy; runs that make no sense
    tensors: x float32 [32, 10] cuda:0; y int64 [32] cuda:0      all that the verdict lists; "-" is none
    holder: trainer.metrics.history 92      what keeps the most memory, and of how many tensors

The line that a verdict must name ends with the comment `<- here`; `<- note` and `<- other` belong
to notes and other processes; `<- backward`, `<- forward`, `<- capture` and `<- replay` are lines
beside it; out of memory, it is the line to blame, if one is: `<- culprit` if WHY must name it, too, and `<- asked` is
the line whose request failed; `<- here, <- either` is an innocent line that cannot be told from the guilty one.
On a simulated GPU, `<- reads` are all lines that read what only a real one can compute, `<- reads, <- perhaps` those
that may do so.
Programs that are shown to people give them as numbers: `expect: … here=21 culprit=14`.
"""
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import checks

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import busy  # noqa: E402

HEADER = re.compile(
    r"^\s*(?:#|//|/?\*)\s*(expect-note|expect-other|expect-silent|expect|needs|env|uses|args"
    r"|gpu|timeout|same-output|alone|build|wrap|options(?=:)|skip(?=:)|tensors(?=:)|holder(?=:))\b:?\s*(.*?)\s*(?:\*/)?\s*$")
# the last lines of every program on a simulated GPU that PyTorch uses
DRY_RUN = re.compile(r"; kernels computed nothing$|; what follows from it may differ$| such values? \(--json lists them all\)$|^cuwhy: no file of yours was changed; ")
MARKS = {"reads", "perhaps", "here", "note", "other", "backward", "forward", "capture", "replay", "either", "culprit", "asked"}
SEVERAL = re.compile(r"(?<!rank )(?<!process )(?<!thread )(?<!device )(?<!GPU )(?<!node )(?<!line )(?<!stream )(?<![\w.,:/-])1 (?:(?:more|other|autograd|earlier) )?(?:processes|threads|allocations|blocks|bytes|calls|devices|elements|events|files|GPUs|kernels"
                     r"|iterations|launches|lines|nodes|packages|passes|ranks|rows|segments|steps|tensors|times|values)\b")
# Programs of tests write files that the tests look at. CUWHY_WRITES_MODE=discard: as users run them, which some tests cannot be.
WRITES = os.environ.get("CUWHY_WRITES_MODE", "real")
PATIENCE = 300      # seconds: how long tests wait for what must happen. A slow machine is no failure
MARK = re.compile(r"<- (%s)\b" % "|".join(sorted(MARKS)))


class Case:
    """One program and what is expected of it."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.main = None
        self.notes, self.others, self.needs, self.uses, self.args = [], [], [], [], []
        self.options, self.skip, self.tensors, self.holder = [], [], None, None
        self.env, self.marks = {}, {}
        self.silent = self.same_output = self.alone = False
        self.gpu, self.build, self.wrap, self.timeout, self.exit = None, [], [], PATIENCE, None
        self.read_header()
        for source in [path] + [os.path.join(os.path.dirname(path), u) for u in self.uses]:
            self.read_marks(source)

    def read_header(self):
        with open(self.path, encoding="utf-8") as source:
            for line in source:
                found = HEADER.match(line)
                if found:
                    self.set(found.group(1), found.group(2))

    def set(self, key, value):
        if key == "expect":
            self.main = fields(value)
            self.exit = status(self.main, self.exit)
            for mark in MARKS & set(self.main):
                self.marks[mark] = [(os.path.basename(self.path), int(number)) for number in self.main.pop(mark)]
        elif key == "expect-silent":
            self.silent = True
            self.main = {"cause": ["none"]}
            self.exit = status(fields(value), self.exit)
        elif key in ("expect-note", "expect-other"):
            found = fields(value)
            (self.notes if key == "expect-note" else self.others).append(found)
            self.exit = status(found, self.exit)
            if self.main is None and key == "expect-note":
                self.main = {"cause": ["none"]}
        elif key == "env":
            name, _, text = value.partition("=")
            self.env[name] = text
        elif key in ("needs", "uses", "args", "build", "wrap", "options", "skip"):
            getattr(self, key).extend(value.split())
        elif key == "gpu":
            self.gpu = value
        elif key == "tensors":
            self.tensors = [] if value == "-" else value.split("; ")
        elif key == "holder":
            self.holder = value
        elif key == "timeout":
            self.timeout = int(value)
        else:
            setattr(self, key.replace("-", "_"), True)

    def read_marks(self, source):
        with open(source, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                for mark in MARK.findall(line):
                    self.marks.setdefault(mark, []).append((os.path.basename(source), number))

    def expected(self):
        if self.silent:
            return "silent"
        return "|".join(self.main["cause"]) + "".join(
            " +note:" + "|".join(n["cause"]) for n in self.notes)


def fields(text):
    """`cause=a|b exit=1` as {"cause": ["a", "b"], "exit": ["1"]}."""
    found = dict(word.split("=", 1) for word in text.split() if "=" in word)
    return {key: re.split(r"[|,]", value) for key, value in found.items()}


def contradiction(text):
    """What an answer says and denies; None if it does not. Lines are wrapped anywhere."""
    text = " ".join(text.split())
    enough = text.count("would have fit with") - text.count("would have fit with expandable_segments")
    several = SEVERAL.search(text)
    if several:
        return "one is not several: '%s'" % several.group(0)
    if "CONFIDENCE certain" in text and "it could also be" in text:
        return "it is certain, and could also be something else"
    if "nothing else would have been enough" in text and enough > 1:
        return "nothing else would have been enough, and %d would" % enough
    return None


def status(found, otherwise):
    return int(found["exit"][0]) if "exit" in found else otherwise


class Result:
    """The result of one case: problems is empty when it passed."""

    def __init__(self, case):
        self.case, self.problems, self.skip = case, [], None
        self.got, self.line, self.exit, self.seconds = "-", "-", "-", 0.0
        self.took = 0.0     # of it, the run under cuwhy
        self.verdict = self.plain = None
        self.artifacts, self.more = {}, {}

    def bad(self, text):
        self.problems.append(text)

    def as_dict(self):
        return {"case": self.case.name, "expected": self.case.expected(), "got": self.got,
                "line": self.line, "exit": self.exit, "seconds": round(self.seconds, 2),
                "skip": self.skip, "problems": self.problems, **self.more}


class Run:
    """Everything that one finished process left behind."""

    def __init__(self, argv, env=None, timeout=PATIENCE, cwd=None, stdin=subprocess.DEVNULL):
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            # Files, not pipes: a grandchild that outlives the program must not block the test.
            child = subprocess.Popen(argv, env=env, cwd=cwd, stdin=stdin, stdout=out, stderr=err,
                                     start_new_session=True)
            try:
                self.code = child.wait(timeout)
                self.timed_out = False
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                self.code = child.wait()
                self.timed_out = True
            out.seek(0)
            err.seek(0)
            self.out, self.err = (f.read().decode("utf-8", "replace") for f in (out, err))
        self.pid = child.pid
        self.seconds = time.monotonic() - began

    @property
    def status(self):
        """As a shell would say it: 128+N for a signal."""
        return self.code if self.code >= 0 else 128 - self.code


class Harness:
    """Knows where cuwhy is and how a program of each kind is started."""

    def __init__(self, cuwhy, python, missing=(), default_gpu=None, build=None, plain=True):
        self.cuwhy, self.python, self.missing = os.path.abspath(cuwhy), python, set(missing)
        self.default_gpu, self.build, self.plain = default_gpu, build, plain

    def command(self, case):
        if case.path.endswith(".py"):
            argv = [self.python, case.path]
        elif case.path.endswith(".sh"):
            argv = ["/bin/sh", case.path]
        else:
            argv = [self.build(case)]
        return [self.python if w == "PYTHON" else w for w in case.wrap] + argv + case.args

    def environment(self, case):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY") or k == "CUWHY_RULES_FIRED"}
        env.update(PYTHON=self.python, PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", CUWHY_WRITES_MODE=WRITES,
                   XDG_STATE_HOME=os.path.join(tempfile.gettempdir(), "none"))   # nothing in the home of whoever runs them
        env.pop("CUDA_VISIBLE_DEVICES", None)
        env.update(case.env)
        return env

    def under_cuwhy(self, case, folder, json_wanted, more=()):
        gpu = case.gpu or self.default_gpu
        options = (["--json"] if json_wanted else []) + (["--gpu", gpu] if gpu else [])
        options += case.options + list(more)
        return ([self.cuwhy, "run"] + options + ["--out", folder, "--"] + self.command(case))

    def run(self, case):
        result = Result(case)
        absent = [need for need in case.needs if need in self.missing]
        if absent:
            result.skip = "no " + " ".join(absent)
            return result
        began = time.monotonic()
        scratch = tempfile.mkdtemp(prefix="cuwhy-test-")
        try:
            self.judge(case, result, os.path.join(scratch, "recording"))
        except Exception as error:  # a broken test is a failed test, never a stopped run
            result.bad("harness: %s: %s" % (type(error).__name__, error))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        result.seconds = time.monotonic() - began
        return result

    def judge(self, case, result, folder):
        env = self.environment(case)
        run = Run(self.under_cuwhy(case, folder, not case.silent), env, case.timeout)
        result.exit, result.took = run.status, run.seconds
        result.artifacts = {"stdout": run.out, "stderr": run.err}
        if run.timed_out:
            result.bad("still running after %d s" % case.timeout)
        if case.exit is not None and run.status != case.exit:
            result.bad("exit status %d, expected %d" % (run.status, case.exit))
        self.compare_with_plain(case, result, run, env)
        verdict = self.read_verdict(result, folder)
        result.verdict = verdict
        if verdict is None:
            return
        checks.shape(result, verdict)
        checks.main(result, case, verdict)
        checks.reads(result, case, verdict)
        checks.tensors(result, case, verdict)
        checks.holder(result, case, verdict)
        checks.listed(result, case, verdict, "notes", case.notes, "note")
        checks.listed(result, case, verdict, "others", case.others, "other")
        self.check_streams(case, result, run, verdict)
        self.check_explain(case, result, folder, verdict, env)

    def compare_with_plain(self, case, result, run, env):
        gpu = case.gpu or self.default_gpu
        if gpu or case.options or "plain" in case.skip or not (self.plain or case.same_output):
            return      # the simulated GPU exists only under cuwhy
        plain = result.plain = Run(self.command(case), env, case.timeout)
        if plain.status != run.status:
            result.bad("exit status %d, without cuwhy %d" % (run.status, plain.status))
        if case.same_output and plain.out != run.out:
            result.bad("stdout differs from the run without cuwhy")
        if case.same_output:
            result.artifacts.update({"stdout-plain": plain.out, "stderr-plain": plain.err})

    def load_verdict(self, result, folder, name="verdict.json"):
        """The verdict in a recording; its text is kept among the artifacts under `name`."""
        path = os.path.join(folder, "verdict.json")
        try:
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
            result.artifacts[name] = text
            return json.loads(text)
        except (OSError, ValueError) as error:
            result.bad("%s: %s" % (name, error))
            return None

    def read_verdict(self, result, folder):
        verdict = self.load_verdict(result, folder)
        if verdict is None:
            return None
        result.got = verdict.get("cause", "?")
        if verdict.get("notes"):
            result.got += " +note:" + ",".join(n.get("cause", "?") for n in verdict["notes"])
        return verdict

    def check_streams(self, case, result, run, verdict):
        ours = [line for line in run.err.splitlines() if line.startswith(("cuwhy", '{"schema"')) and not DRY_RUN.search(line)]
        if case.silent and ours:
            result.bad("stderr is not silent: " + ours[0][:120])
        if not case.silent and verdict.get("cause") != "none":
            try:
                last = json.loads(ours[-1])
                if last.get("cause") != verdict.get("cause"):
                    result.bad("stderr says %s, verdict.json %s" % (last.get("cause"),
                                                                   verdict.get("cause")))
            except (IndexError, ValueError):
                result.bad("no JSON object on stderr")

    def check_explain(self, case, result, folder, verdict, env):
        if verdict.get("cause") == "none":
            return
        again = Run([self.cuwhy, "explain", "-v", folder], env)
        result.artifacts["explain"] = again.out + again.err
        if contradiction(again.out):
            result.bad("the answer contradicts itself: " + contradiction(again.out))
        if again.status != 1:
            result.bad("cuwhy explain exits %d on a failure" % again.status)
        where = verdict.get("where") or {}
        if where.get("file"):
            name = "%s:%d" % (os.path.basename(where["file"]), where["line"])
            if name not in again.out:
                result.bad("the text does not name " + name)


def run_all(harness, cases, jobs, report, most=0):
    """Runs the cases, `jobs` at a time and up to `most` if processors are idle; those marked `alone` at the end and one by one. Reports each."""
    lock, results = threading.Lock(), []

    def one(case):
        result = harness.run(case)
        with lock:
            results.append(result)
            report(result, len(results))

    busy.run([functools.partial(one, case) for case in cases if not case.alone], jobs, most)
    for case in cases:
        if case.alone:
            one(case)
    return results


def wanted(name, filters):
    """Does one of them name it? Part of the name does, or `=` and all of it."""
    return not filters or any(f[1:] == name if f.startswith("=") else f in name for f in filters)


def load_cases(folder, endings, filters):
    names = sorted(n for n in os.listdir(folder) if n.endswith(endings))
    cases = [Case(os.path.join(folder, name)) for name in names]
    cases = [c for c in cases if c.main is not None]
    return [c for c in cases if wanted(c.name, filters)]
