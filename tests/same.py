#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of two builds of cuwhy, byte for byte, over a folder of fixed inputs.

    tests/same.py collect --build BUILD [--tests PART] CORPUS
    tests/same.py compare --before BUILD --after BUILD [--only PART] [--ignore-key KEY] CORPUS
    tests/same.py answers --before BUILD --after BUILD [--only PART] CORPUS [CORPUS]

`collect` fills CORPUS with recordings and whatever else the end-to-end tests leave, core dumps, snapshots, texts, the fuzzers'
corpora and the doctor's machines. Anything more may be put into a folder of its own below CORPUS: recordings are told by their
run.json, other files by their endings (.cwr, .cudacore, .pickle, .bundle.json; compressed ones, too). `compare` asks both builds about
each input; what the first build answered is remembered in CORPUS as a digest, so the next comparison with it takes half the time.
`answers` compares only what an answer claims: cause, certainty, line, headline and handled failures. With a second CORPUS, collected
with the build after, each build is asked about what it recorded itself, as far as both have an input of that name.
"""
import argparse
import collections
import concurrent.futures
import difflib
import hashlib
import importlib.util
import io
import itertools
import json
import lzma
import os
import pickletools
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
LIMIT_S = 60
NOBODY = 65534

# What is asked about an input of each kind. @ is the input, OUT a file to write; < means that the input is standard input.
DOCTOR = ("doctor --json", "doctor", "doctor --json --recommend", "doctor --recommend --color always", "doctor --json --bundle OUT")
COMMANDS = {
    "recording": ("explain --json @", "explain @", "explain --color always @", "memory --json @", "memory @", "memory --by kind --at end @",
                  "memory --json --by library --at peak -n 3 @", "report --json -o OUT @", "export --torch-snapshot --json -o OUT @",
                  "export --chrome-trace -o OUT @"),
    "part": ("explain --json @", "memory --json @"),
    "dump": ("explain --json @", "explain @", "report --json -o OUT @"),
    "snapshot": ("explain --json @", "explain @", "memory --json @", "memory @", "memory --by function @", "memory --json --by pool --at end @",
                 "report -o OUT @"),
    "text": ("explain --json @", "explain @", "explain --color always - <"),
    "bundle": tuple(words + " @" for words in DOCTOR) + ("report --json -o OUT @",),
    "machine": tuple(words + " @" for words in DOCTOR),
    "line": ("@",),
}
ENDINGS = ((".cwr", "part"), (".cudacore", "dump"), (".pickle", "snapshot"), (".bundle.json", "bundle"))
FUZZ = {"trace": "part", "dump": "dump", "snapshot": "snapshot", "text": "text", "bundle": "bundle"}
APART = ("source", "texts", "fuzz", "doctor")   # folders below CORPUS that are not searched for endings
PAGE_DATA = re.compile(rb'(<script type="application/json" id="cuwhy-data">)(.*?)(</script>)', re.S)
TEST_FOLDER = re.compile(r"/[^ :]*/cuwhy-(?:rule|case)-\w+/")
MADE = re.compile(rb'"made":\d+')               # the page's date


def load(*path):
    """A program of the tests as a module; several have the same name."""
    path = os.path.join(*path)
    spec = importlib.util.spec_from_file_location("same_" + re.sub(r"\W", "_", path), path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))    # for the modules beside it
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)


# --- collecting --------------------------------------------------------------------------------------

class Keeper:
    """Saves what the end-to-end tests are about to remove."""

    def __init__(self, corpus):
        self.corpus, self.count, self.lock = corpus, collections.Counter(), threading.Lock()
        self.now, self.remove = threading.local(), shutil.rmtree

    def named(self, function):
        """`function` is given a case as its second argument."""
        def run(owner, case, *more):
            self.now.name = case.name
            return function(owner, case, *more)
        return run

    def place(self, kind, ending=""):
        name = getattr(self.now, "name", "unnamed").removeprefix("rule__")
        with self.lock:
            self.count[kind, name] += 1
            return os.path.join(self.corpus, kind, "%s-%d%s" % (name, self.count[kind, name], ending))

    def take(self, path, kind, ending=""):
        target = self.place(kind, ending)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.move(path, target)

    def rmtree(self, path, *more, **options):
        for folder, names, files in os.walk(path):
            if "run.json" in files:
                names.clear()
                self.take(folder, "recordings")
                continue
            for name in files:
                self.look_at(os.path.join(folder, name))
        if os.path.lexists(path):
            self.remove(path, *more, **options)

    def look_at(self, path):
        ending = os.path.splitext(path)[1]
        if os.path.islink(path) or not os.path.isfile(path):
            return
        if ending in (".cudacore", ".pickle"):
            self.take(path, "dumps" if ending == ".cudacore" else "snapshots", ending)
        elif ending == ".json":
            with open(path, "rb") as stream:
                bundle = b'"cuwhy_bundle"' in stream.read(100)
            if bundle:
                self.take(path, "bundles", ".bundle.json")


def private_build(build, scratch):
    """The tests compile programs into the build: one that leaves the real one alone."""
    folder = os.path.join(scratch, "build")
    os.mkdir(folder)
    for name in os.listdir(build):
        if name != "tests":
            os.symlink(os.path.join(build, name), os.path.join(folder, name))
    return folder


def collect_tests(build, corpus, names):
    """The tests run in a copy: their programs are quoted in answers, and must stay as they are."""
    source = os.path.join(corpus, "source")
    for name in ("tests", "include", "src", "docs", "kb"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(source, name), ignore=shutil.ignore_patterns("__pycache__"))
    sys.path.insert(0, os.path.join(source, "tests", "e2e"))
    import harness
    import run
    import toolbox
    keeper = Keeper(corpus)
    harness.Harness.run = keeper.named(harness.Harness.run)
    toolbox.run_rule = keeper.named(toolbox.run_rule)
    shutil.rmtree = keeper.rmtree
    with tempfile.TemporaryDirectory(prefix="cuwhy-same-") as scratch:
        sys.argv = ["run.py", "--build", private_build(build, scratch), "-j", "2"] + names
        try:
            run.main()
        finally:
            shutil.rmtree = keeper.remove


def collect_dumps(corpus):
    folder = os.path.join(corpus, "dumps")
    shutil.copytree(os.path.join(HERE, "dump", "real"), os.path.join(folder, "real"))
    shutil.copytree(os.path.join(HERE, "golden"), os.path.join(corpus, "golden"))
    fixtures = os.path.join(SHARED, "fixtures")
    for name in sorted(os.listdir(fixtures)) if os.path.isdir(fixtures) else []:
        if name.endswith(".xz"):
            with lzma.open(os.path.join(fixtures, name)) as stream:
                write(os.path.join(folder, "fixtures", name.removesuffix(".xz")), stream.read())


def collect_snapshots(corpus):
    """Whatever tests/snap/check.py would show to cuwhy, and small ones."""
    check, folder = load(HERE, "snap", "check.py"), os.path.join(corpus, "snapshots")
    number = itertools.count(1)
    os.makedirs(folder, exist_ok=True)

    def keep(_build, *words):
        shutil.copyfile(words[-1], os.path.join(folder, "%03d-%s.pickle" % (next(number), os.path.basename(words[-1]))))
        return 0, {"title": ""}

    check.cuwhy = keep
    with tempfile.TemporaryDirectory() as scratch:
        for test in check.tests_by_name().values():
            test(None, scratch)
    for story, shape in itertools.product(check.CAUSES, ("2.1", "2.12")):
        check.make.write(os.path.join(folder, "small-%s-%s.pickle" % (story, shape)), check.make.make(shape, story, 60))


def texts():
    """(name, [(file, text)])"""
    check = load(HERE, "text", "check.py")
    for folder in ("own", "clean"):
        for name in sorted(os.listdir(os.path.join(HERE, "text", folder))):
            if name.endswith(".txt"):
                text = check.read_own(os.path.join(HERE, "text", folder, name))[1]
                yield folder + "-" + name.removesuffix(".txt"), check.files_of(text) if folder == "own" else [("log.txt", text)]
    for cause, text, _ in check.examples():
        if text:
            yield "example-" + cause, [("example.txt", text + "\n")]
    for name in sorted(os.listdir(os.path.join(HERE, "text", "reports"))):
        if name.endswith(".jsonl"):
            with open(os.path.join(HERE, "text", "reports", name), encoding="utf-8") as reports:
                for number, report in enumerate(map(json.loads, reports)):
                    yield "public-%s-%d" % (name.removesuffix(".jsonl"), number), check.reports.parts(report)
    if not os.path.exists(check.CASES):
        print("same: SKIPPED: the public reports are not here (%s)" % check.CASES)
        return
    with open(check.CASES, encoding="utf-8") as cases:
        for case in map(json.loads, cases):
            log = ("log.txt", case["text"] + "\n")
            yield "report-" + case["id"], [log]
            if case["env"]:
                yield "report-" + case["id"] + "-env", [log, ("env.txt", case["env"] + "\n")]


def collect_texts(corpus):
    for name, parts in texts():
        for i, (file, text) in enumerate(parts):
            write(os.path.join(corpus, "texts", name, str(i), file), text.encode("utf-8"))


def collect_machines(corpus):
    """machines.jsonl says how to call the doctor; folders in it are below CORPUS."""
    check, folder, rows = load(HERE, "doctor", "check.py"), os.path.join(corpus, "doctor"), []
    for row in check.read_table():
        place, bundle = os.path.join(folder, row["name"]), os.path.join(HERE, "doctor", "machines", row["name"] + ".json")
        if os.path.exists(bundle):
            write(place + ".bundle.json", open(bundle, "rb").read())
            continue
        os.makedirs(place)
        arguments = check.tree.build(os.path.join(HERE, "doctor", "trees", row["name"] + ".tree"), place)
        rows.append({"name": row["name"], "arguments": [os.path.relpath(word, corpus) if word.startswith("/") else word for word in arguments],
                     "ordinary_user": check.tree.wants_ordinary_user(place)})
    for model, nvml in itertools.product(("tiny", "h200"), ("", "gpu")):
        rows.append({"name": "sim-" + model + nvml, "arguments": [], "ordinary_user": False,
                     "env": {"LD_LIBRARY_PATH": "BUILD/sim", "CUWHY_SIM": model, "CUWHY_SIM_NVML": nvml}})
    write(os.path.join(corpus, "doctor", "machines.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())


def collect_lines(build, corpus):
    """Command lines that need no file: help, usage errors, all causes and the codes that this build knows."""
    commands = ("run", "explain", "memory", "report", "export", "doctor")
    lines = [[], ["--help"], ["help"], ["nonsense"], ["explain", "--list"], ["explain", "--list", "--json"], ["explain", "nonsense"],
             ["explain", "/no/such/file"], ["explain", "--json", "/no/such/file"]]
    for command in commands:
        lines += [[command], [command, "-h"], [command, "--json", "--nonsense"], [command, "--color", "pink"], [command, "/no/such/file"]]
    words = [name.removesuffix(".md") for name in sorted(os.listdir(os.path.join(ROOT, "kb", "causes")))]
    for name in sorted(os.listdir(os.path.join(ROOT, "kb"))):
        if name.endswith(".def"):
            with open(os.path.join(ROOT, "kb", name), encoding="utf-8") as text:
                words += sorted(set(re.findall(r"\b(?:CUDA_ERROR|CU[A-Z]+_STATUS)_[A-Z_0-9]+|\bcudaError[A-Z]\w+|\bnccl[A-Z]\w+", text.read())))
    numbers = [str(n) for n in range(1000)] + ["Xid %d" % n for n in range(1, 180)]
    words += [word for word in numbers if subprocess.run([os.path.join(build, "cuwhy"), "explain", word], capture_output=True).returncode == 0]
    for word in dict.fromkeys(words):
        lines += [["explain", word], ["explain", "--json", word]]
    write(os.path.join(corpus, "lines.txt"), "".join(shlex.join(line) + "\n" for line in lines).encode())


def collect(o):
    build, corpus = os.path.abspath(o.build), os.path.abspath(o.corpus)
    made = ("source", "recordings", "dumps", "snapshots", "bundles", "texts", "fuzz", "doctor", "golden")
    for name in made:
        if os.path.isdir(os.path.join(corpus, name)):
            load(HERE, "doctor", "tree.py").release(os.path.join(corpus, name))
            shutil.rmtree(os.path.join(corpus, name))
    forget(corpus)
    os.makedirs(corpus, exist_ok=True)
    collect_lines(build, corpus)
    collect_texts(corpus)
    collect_dumps(corpus)
    collect_snapshots(corpus)
    collect_machines(corpus)
    for name in FUZZ:
        shutil.copytree(os.path.join(HERE, "fuzz", "corpus", name), os.path.join(corpus, "fuzz", name))
    collect_tests(build, corpus, o.tests)
    count = collections.Counter(i.kind for i in find_inputs(corpus))
    print("same: %s: %s" % (corpus, ", ".join("%d of kind %s" % (n, kind) for kind, n in sorted(count.items()))))
    return 0


# --- inputs ------------------------------------------------------------------------------------------

class Input:
    """One thing to ask about; `words` replace the @."""

    def __init__(self, kind, name, words, env=None, ordinary_user=False):
        self.kind, self.name, self.words, self.env, self.ordinary_user = kind, name, words, env or {}, ordinary_user


def below(folder):
    """Files below a folder, in order."""
    return sorted(os.path.join(at, name) for at, _, files in os.walk(folder) for name in files)


def kind_by_ending(name):
    return next((kind for ending, kind in ENDINGS if re.search(re.escape(ending) + r"(\.gz|\.xz|\.zst)?$", name)), None)


def find_by_ending(corpus):
    for folder, names, files in os.walk(corpus):
        names[:] = sorted(n for n in names if not n.startswith(".") and not (folder == corpus and n in APART))
        if "run.json" in files:
            yield "recording", folder
        for name in sorted(files):
            if kind_by_ending(name):
                yield kind_by_ending(name), os.path.join(folder, name)


def find_listed(corpus):
    """The inputs that are lines of a file."""
    with open(os.path.join(corpus, "doctor", "machines.jsonl"), encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            words = [os.path.join(corpus, w) if "/" in w else w for w in row["arguments"]]
            yield Input("machine", "doctor/" + row["name"], words, row.get("env"), row["ordinary_user"])
    with open(os.path.join(corpus, "lines.txt"), encoding="utf-8") as lines:
        for line in lines:
            yield Input("line", line.strip() or "(no words)", shlex.split(line))


def find_inputs(corpus):
    name = lambda path: os.path.relpath(path, corpus)
    folder = os.path.join(corpus, "texts")
    for text in sorted(os.listdir(folder)):
        yield Input("text", "texts/" + text, below(os.path.join(folder, text)))
    for part, kind in FUZZ.items():
        for path in below(os.path.join(corpus, "fuzz", part)):
            yield Input(kind, name(path), [path])
    for path in sorted(p for p in os.listdir(os.path.join(corpus, "doctor")) if p.endswith(".bundle.json")):
        yield Input("bundle", "doctor/" + path, [os.path.join(corpus, "doctor", path)])
    for kind, path in find_by_ending(corpus):
        yield Input(kind, name(path), [path])
    yield from find_listed(corpus)


# --- asking ------------------------------------------------------------------------------------------

Answer = collections.namedtuple("Answer", "status stdout stderr file")


def without_keys(value, keys):
    if isinstance(value, dict):
        return {k: without_keys(v, keys) for k, v in value.items() if k not in keys}
    return [without_keys(v, keys) for v in value] if isinstance(value, list) else value


def drop_keys(data, keys):
    """JSON, or the JSON of a page, without the values of these keys; anything else unchanged."""
    page = PAGE_DATA.search(data)
    try:
        value = without_keys(json.loads(page.group(2) if page else data), keys)
    except ValueError:
        return data
    text = json.dumps(value).encode()
    return data[:page.start(2)] + text + data[page.end(2):] if page else text


class Build:
    """A folder that make has filled."""

    def __init__(self, folder, both, corpus, ignored):
        self.folder, self.corpus, self.ignored = os.path.realpath(folder), corpus, ignored
        self.both = [os.path.realpath(path).encode() + b"/" for path in both]
        self.cuwhy = os.path.join(self.folder, "cuwhy")
        if not os.access(self.cuwhy, os.X_OK):
            sys.exit("same: %s is not there" % self.cuwhy)

    def environment(self, asked, home):
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": "100", "TZ": "UTC", "HOME": home}
        env.update((k, v.replace("BUILD", self.folder)) for k, v in asked.env.items())
        return env

    def clean(self, data, work):
        """Leaves out what differs between any two runs: the folders of the builds, the scratch folder, the page's date."""
        for folder in self.both:    # recordings name the build that made them, whichever build reads them
            data = data.replace(folder, b"BUILD/")
        data = data.replace(work.encode(), b"WORK")
        data = MADE.sub(b'"made":0', data) if PAGE_DATA.search(data) else data
        return drop_keys(data, self.ignored) if self.ignored else data

    def ask(self, asked, command, work):
        """What cuwhy answers, from the scratch folder `work`, which is empty before and after."""
        words = [w for word in command.split() for w in (asked.words if word == "@" else [word]) if word != "<"]
        out = os.path.join(work, "OUT")
        try:
            done = subprocess.run([self.cuwhy] + words, cwd=work, env=self.environment(asked, os.path.join(self.corpus, ".home")),
                                  stdin=open(asked.words[0], "rb") if "<" in command else subprocess.DEVNULL, capture_output=True,
                                  timeout=LIMIT_S, user=NOBODY if asked.ordinary_user and os.geteuid() == 0 else None)
            streams = [done.returncode, done.stdout, done.stderr]
        except subprocess.TimeoutExpired:
            streams = ["still running after %d s" % LIMIT_S, b"", b""]
        wrote = b""
        if os.path.exists(out):
            with open(out, "rb") as stream:
                wrote = stream.read()
            os.unlink(out)
        return Answer(streams[0], *(self.clean(data, work) for data in streams[1:] + [wrote]))


def digest(answer):
    total = hashlib.sha256(str(answer.status).encode())
    for data in answer[1:]:
        total.update(b"%d " % len(data) + data)
    return total.hexdigest()


class Memory:
    """Digests of what the build before answered, for as long as it, the options and this program are the same."""

    def __init__(self, build, fresh):
        key = hashlib.sha256(repr(build.ignored).encode())
        for path in (build.cuwhy, os.path.join(build.folder, "cuwhy-probe"), os.path.abspath(__file__)):
            with open(path, "rb") as stream:
                key.update(stream.read())
        self.path, self.known = os.path.join(build.corpus, ".before-%s.json" % key.hexdigest()[:16]), {}
        if not fresh:
            self.known = self.read()

    def read(self):
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as stream:
            return json.load(stream)

    def save(self):
        """Another comparison may have saved its part meanwhile."""
        made = "%s.%d" % (self.path, os.getpid())
        with open(made, "w", encoding="utf-8") as stream:
            json.dump({**self.read(), **self.known}, stream)
        os.replace(made, self.path)


def forget(corpus):
    for name in os.listdir(corpus) if os.path.isdir(corpus) else []:
        if name.startswith(".before-"):
            os.unlink(os.path.join(corpus, name))


# --- comparing ---------------------------------------------------------------------------------------

def lines_of(data):
    """JSON with one value per line, a page with its data first, a pickle as its opcodes."""
    page = PAGE_DATA.search(data)
    if page:
        return lines_of(page.group(2)) + lines_of(data[:page.start()] + data[page.end():])
    try:
        return json.dumps(json.loads(data), indent=1, ensure_ascii=False).splitlines()
    except (ValueError, RecursionError):
        pass
    if data[:1] == b"\x80":
        shown = io.StringIO()
        try:
            pickletools.dis(data, shown)
            return [re.sub(r"^ *\d+: ", "", line) for line in shown.getvalue().splitlines()]
        except (ValueError, IndexError, KeyError):
            pass
    return data.decode("utf-8", "backslashreplace").splitlines()


def shortened(lines):
    """When a long line replaces one that begins alike, only what is near the difference."""
    for i in range(len(lines) - 1):
        old, new = lines[i], lines[i + 1]
        alike = len(os.path.commonprefix([old[1:], new[1:]]))
        if old[:1] == "-" and new[:1] == "+" and alike > 120:
            lines[i:i + 2] = [line[:40] + " ... " + line[alike - 40:] for line in (old, new)]
    return [line if len(line) <= 240 else line[:240] + " ..." for line in lines]


def show_difference(before, after, limit):
    """A short unified diff. Looks at only part of what follows the first difference: pages and traces are long."""
    old, new = lines_of(before), lines_of(after)
    same = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    begin = max(0, same - 3)
    shown = list(difflib.unified_diff(old[begin:begin + 2000], new[begin:begin + 2000], "before", "after", lineterm="", n=2))[2:]
    if not shown:
        shown = ["the same lines, but not the same bytes (%d and %d)" % (len(before), len(after))]
    more = ["... %d more lines" % (len(shown) - limit)] if len(shown) > limit else []
    return ["    " + line for line in shortened(shown[:limit]) + more]


class Comparison:
    def __init__(self, before, after, memory, o):
        self.before, self.after, self.memory, self.lines = before, after, memory, o.lines
        self.lock, self.count, self.works = threading.Lock(), collections.defaultdict(collections.Counter), queue.SimpleQueue()
        self.slow = 0

    def one(self, asked, command):
        work = self.works.get()
        try:
            result, text = self.judge(asked, command, work)
        finally:
            self.works.put(work)
        with self.lock:
            self.count[asked.kind, command][result] += 1
            if text:
                print("\n".join(text), flush=True)

    def judge(self, asked, command, work):
        """(equal, differ or not deterministic; what to print)"""
        key = "%s: %s" % (asked.name, command)
        if key not in self.memory.known:
            self.memory.known[key] = digest(self.before.ask(asked, command, work))
        new = self.after.ask(asked, command, work)
        self.slow += isinstance(new.status, str)
        if self.memory.known[key] == digest(new):
            return "equal", None
        old = [self.before.ask(asked, command, work) for _ in range(2)]
        self.memory.known[key] = digest(old[0])
        if old[0] == old[1] == new:
            return "equal", None
        again = self.after.ask(asked, command, work)
        about = "%s, %s" % (command.replace(" @", ""), asked.name)
        if old[0] != old[1]:
            return "not deterministic", ["NOT DETERMINISTIC: " + about]
        twice = "" if again == new else " (and differs from itself when asked again)"
        return "differ", ["DIFFERS: " + about + twice] + self.explain(old[0], new)

    def explain(self, old, new):
        text = ["  exit status %s, was %s" % (new.status, old.status)] if old.status != new.status else []
        for name in ("stdout", "stderr", "file"):
            if getattr(old, name) != getattr(new, name):
                text += ["  " + name + ":"] + show_difference(getattr(old, name), getattr(new, name), self.lines)
        return text

    def summary(self):
        """Prints the counts; returns whether nothing differs."""
        total = collections.Counter()
        for (kind, command), count in self.count.items():
            total.update(count)
            others = "".join(", %d %s" % (count[word], word) for word in ("differ", "not deterministic") if count[word])
            print("%-10s %-42s %d equal%s" % (kind, command.replace(" @", "") if kind != "line" else "as it is", count["equal"], others))
        print("same: %d answers equal, %d differ, %d not deterministic%s" % (
            total["equal"], total["differ"], total["not deterministic"], ", %d took too long" % self.slow if self.slow else ""))
        return not total["differ"]


def questions(corpus, only):
    for asked in find_inputs(corpus):
        for command in COMMANDS[asked.kind]:
            if "<" in command and len(asked.words) != 1 or "--bundle" in command and asked.env:
                continue    # the bundle of a running machine is never the same twice
            if all(part in "%s: %s: %s" % (asked.kind, asked.name, command) for part in only):
                yield asked, command


def compare(o):
    corpus, began = os.path.abspath(o.corpus), time.monotonic()
    before, after = (Build(folder, (o.before, o.after), corpus, sorted(o.ignore_key)) for folder in (o.before, o.after))
    memory = Memory(before, o.fresh)
    comparison = Comparison(before, after, memory, o)
    os.makedirs(os.path.join(corpus, ".home"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cuwhy-same-") as scratch:
        os.chmod(scratch, 0o755)
        for i in range(o.jobs):
            work = os.path.join(scratch, str(i))
            os.mkdir(work)
            os.chmod(work, 0o777)   # some machines are examined as an ordinary user
            comparison.works.put(work)
        pool = concurrent.futures.ThreadPoolExecutor(o.jobs)
        try:
            for _ in pool.map(lambda question: comparison.one(*question), questions(corpus, o.only)):
                pass
        finally:
            pool.shutdown(cancel_futures=True)
            memory.save()
    fine = comparison.summary()
    print("same: %d s" % (time.monotonic() - began))
    return 0 if fine else 1


# --- what is claimed ---------------------------------------------------------------------------------

CLAIMS = ("status", "cause", "certainty", "line", "headline", "handled")


def claims(answer):
    """What an answer says, without how: a dictionary with CLAIMS."""
    try:
        said = json.loads(answer.stdout)
    except ValueError:
        said = {}
    where = said.get("where") or {}
    handled = ["%s %s" % (note.get("cause"), note.get("certainty")) for note in said.get("notes") or [] if isinstance(note, dict)]
    return {"status": answer.status, "cause": said.get("cause"), "certainty": said.get("certainty"), "handled": ", ".join(handled),
            "line": "%s:%s" % (where.get("file"), where.get("line")) if where else None, "headline": said.get("title")}


def place_of_test(text, corpus):
    """Recordings quote the folders in which their programs ran, and each test has a new one."""
    return TEST_FOLDER.sub("TEST/", text.replace(corpus, "CORPUS"))


def claims_of(build, asked, scratch):
    command = next(words for words in COMMANDS[asked.kind] if "--json" in words)
    with tempfile.TemporaryDirectory(dir=scratch) as work:
        os.chmod(work, 0o777)    # some machines are examined as an ordinary user
        return {k: place_of_test(v, build.corpus) if isinstance(v, str) else v for k, v in claims(build.ask(asked, command, work)).items()}


def kind_of_difference(old, new):
    """The first claim that differs, which is what the others follow from, and how."""
    first = next(key for key in CLAIMS if old[key] != new[key])
    return first, "%s: %s -> %s" % (first, old[first], new[first]) if first in ("status", "cause", "certainty") else first


def answers(o):
    corpora = [os.path.abspath(path) for path in (o.corpus, o.corpus_after or o.corpus)]
    before, after = (Build(folder, (o.before, o.after), corpus, []) for folder, corpus in zip((o.before, o.after), corpora))
    inputs = [{asked.name: asked for asked in find_inputs(corpus) if asked.kind != "line" and
               all(part in "%s: %s" % (asked.kind, asked.name) for part in o.only)} for corpus in corpora]
    names = [name for name in inputs[0] if name in inputs[1]]
    count, differ = collections.Counter(inputs[0][name].kind for name in names), collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="cuwhy-same-") as scratch, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        os.chmod(scratch, 0o755)
        both = lambda name: (name, claims_of(before, inputs[0][name], scratch), claims_of(after, inputs[1][name], scratch))
        for name, old, new in pool.map(both, names):
            if old != new:
                differ[kind_of_difference(old, new)].append((name, old, new))
    for (first, kind), found in sorted(differ.items(), key=lambda group: (CLAIMS.index(group[0][0]), -len(group[1]), group[0][1])):
        print("%d of %s" % (len(found), kind))
        for name, old, new in found:
            print("    " + name)
            for key in CLAIMS:
                if old[key] != new[key]:
                    print("        %s: %s -> %s" % (key, old[key], new[key]))
    total = sum(map(len, differ.values()))
    print("same: %s: %d answers, %d claim something else; inputs that only one corpus has: %d and %d" % (
        ", ".join("%d %s" % (n, kind) for kind, n in sorted(count.items())), len(names), total, len(inputs[0]) - len(names), len(inputs[1]) - len(names)))
    return 1 if total else 0


def main():
    p = argparse.ArgumentParser(description="two builds of cuwhy over the same inputs")
    commands = p.add_subparsers(dest="command", required=True)
    c = commands.add_parser("collect", help="fill a folder with inputs")
    c.add_argument("--build", default="build", help="folder that make has filled")
    c.add_argument("--tests", action="append", default=[], metavar="PART", help="only end-to-end tests with this in their name, or =NAME")
    c.set_defaults(do=collect)
    c = commands.add_parser("compare", help="ask two builds, and print every difference")
    c.add_argument("--before", required=True, metavar="BUILD")
    c.add_argument("--after", required=True, metavar="BUILD")
    c.add_argument("--only", action="append", default=[], metavar="PART",
                   help="only what has this in 'KIND: INPUT: COMMAND'; given twice, both")
    c.add_argument("--ignore-key", action="append", default=[], metavar="KEY", help="leave this key of JSON objects out, wherever it is")
    c.add_argument("--lines", type=int, default=20, metavar="N", help="print so many lines of each difference")
    c.add_argument("--fresh", action="store_true", help="ask the build before about everything, although its answers are known")
    c.add_argument("-j", type=int, default=2, dest="jobs")
    c.set_defaults(do=compare)
    c = commands.add_parser("answers", help="ask two builds, and count the claims that differ")
    c.add_argument("--before", required=True, metavar="BUILD")
    c.add_argument("--after", required=True, metavar="BUILD")
    c.add_argument("--only", action="append", default=[], metavar="PART", help="only what has this in 'KIND: INPUT'; given twice, both")
    c.add_argument("-j", type=int, default=2, dest="jobs")
    c.set_defaults(do=answers)
    for c in commands.choices.values():
        c.add_argument("corpus")
    commands.choices["answers"].add_argument("corpus_after", nargs="?", metavar="CORPUS", help="what the build after is asked about")
    o = p.parse_args()
    return o.do(o)


if __name__ == "__main__":
    sys.exit(main())
