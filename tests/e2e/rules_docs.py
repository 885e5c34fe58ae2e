# SPDX-License-Identifier: Apache-2.0
"""The commands that the documents show run, in a folder with the files that they name.

Taken are the lines of code blocks and the code in tables that begin with `cuwhy`. Each may find a failure (that is what it is for), but not be
misunderstood, crash, or hang. What needs a GPU, PyTorch or a launcher is in NEEDS.
"""
import gzip
import os
import re
import shutil
import subprocess
import sys

from rules_json import OOM
from toolbox import same

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENTS = ["README.md"] + ["docs/%s.md" % name for name in (
    "quickstart", "which-command", "explain", "run", "guard", "hangs", "jobs", "memory", "report", "export", "snapshots", "doctor", "fit", "dry-run")]
NEEDS = (
    (r"\b(torchrun|accelerate|srun|jupyter|pytest)\b", "a launcher or another package"),
    (r"^cuwhy fit\b.*(--|^cuwhy fit$)", "PyTorch"),
    (r"^cuwhy (memory|run|fit|export)$|^cuwhy run --memory-trace$", "a GPU, or only names the command"),
    (r"explain --try\b", "a program that runs out of memory again"),
    (r"--at 1m,10m", "a recording of ten minutes"),
    (r"--root DIR", "a copied tree"),
    (r"--watch\b", "a GPU, or a program to watch"),
    (r"memory --pid\b", "a recorded process that runs"),
    (r"explain --all\b", "a process of this user that has loaded CUDA"),
    (r"nccl_trace_rank|attempt_0|dumps/", "files that PyTorch writes in a job"),
    (r"…|\.\.\. ?$|\[options\]", "words of your own"),
)
# placeholders of the documents, and what stands for them here
WORDS = {"RECORDING": "out", "[RECORDING]": "out", "DIR": "out", "CAUSE": "oom-capacity", "FILE": "bundle.json", "PATH": sys.executable,
         "N": "%d" % os.getpid(), "PID": "%d" % os.getpid(), "4711": "%d" % os.getpid(), "4712": "%d" % os.getppid(), "A": "out", "B": "out", "main/": "out/", "branch/": "out/",
         "WHAT": "memory=24GiB", "/shared/why": "why"}
FINE = (0, 1)
MISUNDERSTOOD = re.compile(r"no such option|takes |unknown option|is not a command|no such file|does not exist", re.I)
SECONDS = 120

TRAIN = """import sys
sys.path.insert(0, %r)
from gpu import Gpu
gpu, kept = Gpu(), []
for step in range(12):
    kept.append(gpu.empty(1 << 30))
"""
LOG = """Traceback (most recent call last):
  File "train.py", line 7, in <module>
    y = model(x.cuda())
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


def code_of(text):
    """Lines of code blocks, and code in tables."""
    fenced = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
    for block in fenced:
        yield from block.strip().split("\n")
    for line in text.split("\n"):
        if line.startswith("    "):
            yield line.strip()
        elif line.startswith("|"):
            yield from re.findall(r"`([^`]+)`", line)


def commands_of(text):
    seen = []
    for line in code_of(text):
        command = re.split(r"\s+#|(?<=\S)   +|(?<=\S)  (?=[a-z(])", line)[0].strip()
        if re.match(r"(cuwhy |cuwhy$|python.*\| cuwhy |echo )", command) and ": " not in command.split('"')[0] and command not in seen:
            seen.append(command)
    return seen


def filled_in(command):
    return " ".join(WORDS.get(word, word) for word in command.split(" "))


def fill_folder(box, place, env):
    def write(name, text):
        with open(os.path.join(place, name), "w", encoding="utf-8") as f:
            f.write(text)
    os.makedirs(os.path.join(place, "logs"))
    os.symlink(os.path.join(ROOT, "examples"), os.path.join(place, "examples"))
    for name in ("train.py", "x.py"):
        write(name, TRAIN % os.path.join(ROOT, "examples", "site-packages"))
    for name in ("train.log", "logs/rank0.log"):
        write(name, LOG)
    write("smi.txt", "no running processes found\n")
    with gzip.open(os.path.join(ROOT, "tests", "dump", "real", "illegal-address.cudacore.gz")) as dump, \
            open(os.path.join(place, "core.cudacore"), "wb") as plain:
        plain.write(dump.read())
    run = box.under(box.script(OOM), "--memory-trace", FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    shutil.copytree(run.folder, os.path.join(place, "out"))
    subprocess.run([box.cuwhy, "run", "--job", "why", sys.executable, "train.py"], cwd=place, env=dict(env, RANK="0", WORLD_SIZE="1"), capture_output=True, timeout=SECONDS)
    for name in ("snap.pickle", "snapshot.pickle"):
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "snap", "make_snapshot.py"), name], cwd=place, check=True, capture_output=True)
    for name in ("bundle.json", "my.json"):
        subprocess.run([box.cuwhy, "doctor", "--bundle", name], cwd=place, env=env, capture_output=True, timeout=SECONDS)


def problem(command, place, env):
    """Why a command cannot be shown to anybody; None if it can."""
    words = filled_in(command).replace("python train.py", "python3 train.py").replace("python x.py", "python3 x.py")
    if " --out out " in words:
        words = words.replace("--out out ", "--out elsewhere --force ")
    try:
        done = subprocess.run(words, shell=True, cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "it did not end in %d s" % SECONDS
    said = [line for line in done.stderr.split("\n") if line.startswith("cuwhy:")]
    # a program that is to fail on the GPU, and does not get that far
    never_began = re.search(r"^(ModuleNotFoundError|ImportError|SyntaxError|python3?: can't open file)", done.stderr, re.M)
    if done.returncode in FINE and not never_began and not any(MISUNDERSTOOD.search(line) for line in said):
        return None
    return "%s: status %d: %s" % (words, done.returncode, done.stderr[-300:])


def rule__the_commands_of_the_documents_run(box):
    place = os.path.join(box.scratch, "documents")
    env = box.env(PATH=os.path.dirname(box.cuwhy) + ":" + os.environ["PATH"], CUWHY_DIR=os.path.join(place, "recordings"), PYTHONDONTWRITEBYTECODE="1")
    wrong, ran = [], 0
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    fill_folder(box, place, env)
    for document in DOCUMENTS:
        with open(os.path.join(ROOT, document), encoding="utf-8") as f:
            commands = [x for x in commands_of(f.read()) if not any(re.search(words, x) for words, _ in NEEDS)]
        found = [problem(command, place, env) for command in commands]
        wrong += ["%s: %s" % (document, why) for why in found if why]
        ran += len(commands)
    same(wrong, [], "commands that do not run")
    assert ran > 50, "only %d commands were found" % ran
