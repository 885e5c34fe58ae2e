#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a newcomer does who has read README.md alone, on a bare Debian: run.py [--check] [--trees FOLDER] [--out FILE] SUITE...

Each SUITE (bullseye, bookworm, trixie) is installed once by debootstrap into FOLDER, copied, and entered with the sources of this tree, as git
knows them. As root, with network; nothing outside FOLDER is written. A task is done when it ends as README.md says and prints what it promises; the words that it
rests on must be in README.md. What the tasks print is in FOLDER/SUITE.log. Prints a table with the seconds of each task, and what went wrong. --check: `make check`, too (ten minutes each on two idle processors)."""
import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLACE = "root/cuwhy"
SECONDS = 5400
PACKAGES_MAX, DEMO_MAX = 60, 60

LOG = """step 118 loss 2.31
Traceback (most recent call last):
  File "/home/user/train.py", line 60, in <module>
    main()
  File "/home/user/train.py", line 41, in main
    logits = model(images.to(device))
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""
# what to do, the words of README.md that say so, the command, its exit statuses, what it must print
TASKS = (
    ("install what fetches and builds it", "apt-get install git make", "apt-get update && apt-get install -y --no-install-recommends git make", (0,), ""),
    ("download what it needs", "`make` installs the packages it is missing", "make deps", (0,), ""),
    ("see it work", "make demo", "make demo", (0,), r"(?s)illegal.*WHERE.*out of memory.*FITS.*Open it:\s+/root/cuwhy/build/demo/report\.html"),
    ("install it", "make install", "make install && cuwhy --version", (0,), r"cuwhy \d+\.\d+"),
    ("explain a log", "cuwhy explain train.log", "cuwhy explain train.log", (1,), r"(?s)GPU.*WHERE\s+/home/user/train\.py:41.*FIX"),
    ("explain a pasted log", "cuwhy explain", "cat train.log | cuwhy explain -", (1,), r"WHERE\s+/home/user/train\.py:41"),
    ("explain a code", "cuwhy explain 700", "cuwhy explain 700", (0,), r"CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("run a program that is not there", "cuwhy run python train.py", "cuwhy run python train.py", (127, 2), r"python3"),
    ("run a failing program on a simulated GPU", "cuwhy run --gpu sim:", "cuwhy run --gpu sim:h200 python3 examples/too_large_a_grid.py", (1,),
     r"(?s)WHERE\s+examples/too_large_a_grid\.py:\d+.*FIX.*CONFIDENCE"),
    ("the same as a page", "cuwhy report", "cuwhy report && ls -l cuwhy-report.html", (0,), r"cuwhy-report\.html"),
    ("will it fit?", "cuwhy fit -- python train.py", "cd examples && PYTHONPATH=../build/demo/site-packages cuwhy fit -- python3 train.py", (0, 1),
     r"GPU\s+MEMORY\s+FITS"),
    ("where did the memory go?", "cuwhy memory RECORDING", "cuwhy memory build/demo/recordings/*", (0,), r"evaluate\.py:11"),
    ("the same of a memory snapshot", "a memory snapshot", "python3 tests/snap/make_snapshot.py snapshot.pickle && cuwhy memory snapshot.pickle", (0,), r"\.py:\d+"),
    ("is this machine able?", "cuwhy doctor", "cuwhy doctor", (0, 1), r"(?i)driver"),
    ("which PyTorch to install?", "cuwhy doctor --recommend", "cuwhy doctor --recommend", (0, 1), r"(?i)(driver|pip install|--gpu)"),
    ("uninstall it", "make uninstall", "make uninstall && ! command -v cuwhy && ! ls /usr/local/lib/cuwhy /usr/local/share/man/man1/cuwhy* 2>/dev/null", (0,), ""),
    ("install the wheel", "make wheel && pip install build/cuwhy-*.whl",
     "apt-get install -y --no-install-recommends python3-venv && python3 -m venv ~/venv && . ~/venv/bin/activate && "
     "make wheel && pip install build/cuwhy-*.whl && cuwhy explain 700", (0,), r"CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("use it from Python", "import cuwhy", "~/venv/bin/python -c 'import cuwhy; print(cuwhy.explain(700).cause)'", (0,), r"illegal|\w+-\w+|None"),
    ("uninstall the wheel", "pip uninstall cuwhy", "~/venv/bin/pip uninstall -y cuwhy && ! ls ~/venv/bin/cuwhy 2>/dev/null", (0,), r"Successfully uninstalled"),
)
CHECK = ("check it", "make check", "make check", (0,), r"tree: \d+ passed, 0 failed")


def sh(*words, **more):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace", **more)


class Tree:
    """A copy of a bare Debian with the sources in it."""

    def __init__(self, trees, suite):
        base = os.path.join(trees, "base-" + suite)
        if not os.path.isfile(os.path.join(base, "etc", "debian_version")):
            made = sh("debootstrap", "--variant=minbase", suite, base)
            if made.returncode:
                raise SystemExit("newcomer: debootstrap cannot install %s\n%s" % (suite, made.stdout[-500:]))
        self.root = os.path.join(trees, suite)
        # a file, not a pipe: `make check` takes long, and people look how far it is
        self.log = self.root + ".log"
        open(self.log, "w", encoding="utf-8").close()
        if os.path.isdir(self.root):
            shutil.rmtree(self.root)
        subprocess.run(["cp", "-a", base, self.root], check=True)
        shutil.copy("/etc/resolv.conf", os.path.join(self.root, "etc/resolv.conf"))
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
        for name in filter(None, names):
            path = os.path.join(self.root, PLACE, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), path, follow_symlinks=False)
        with open(os.path.join(self.root, PLACE, "train.log"), "w", encoding="utf-8") as f:
            f.write(LOG)

    def inside(self, command):
        script = "mount -t proc proc '%s/proc' && mount --rbind /dev '%s/dev' && mount --rbind /sys '%s/sys' && exec chroot '%s' env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 " \
                 "DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c 'cd /%s && eval \"$0\"' \"$0\"" % (
                     self.root, self.root, self.root, self.root, PLACE)
        with open(self.log, "a+", encoding="utf-8", errors="replace") as f:
            f.write("$ %s\n" % command)
            f.flush()
            began = f.tell()
            try:
                status = subprocess.run(("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, command), stdin=subprocess.DEVNULL, stdout=f,
                                        stderr=subprocess.STDOUT, timeout=SECONDS).returncode
            except subprocess.TimeoutExpired:
                status = None
            f.seek(began)
            return status, f.read()

    def packages(self):
        with open(os.path.join(self.root, "var/lib/dpkg/status"), encoding="utf-8") as f:
            return f.read().count("\nStatus: install ok installed") + 1


def promised():
    """Tasks that rest on words that README.md does not have."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    return ["%s: README.md does not say '%s'" % (what, words) for what, words, _, _, _ in (*TASKS, CHECK) if words not in text]


def processor():
    """Seconds of processor time so far: what a task costs, however busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def attempt(tree, task):
    what, _, command, statuses, wanted = task
    before, began, used = tree.packages(), time.monotonic(), processor()
    status, output = tree.inside(command)
    took, used = time.monotonic() - began, processor() - used
    why = None
    if status is None:
        why = "not finished after %d s" % SECONDS
    elif status not in statuses:
        why = "status %d" % status
    elif not re.search(wanted, output):
        why = "it does not print %s" % wanted
    return {"task": what, "command": command, "seconds": round(took, 1), "processor": round(used, 1), "packages": tree.packages() - before, "why": why, "output": output}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suites", nargs="*", default=["bookworm", "bullseye", "trixie"])
    parser.add_argument("--trees", default=os.path.expanduser("~/.cache/cuwhy/newcomer"))
    parser.add_argument("--check", action="store_true", help="run `make check` as the last task")
    parser.add_argument("--out", help="everything as JSON, outputs included")
    given = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("debootstrap") or not shutil.which("unshare"):
        print("newcomer: skipped, this needs root, debootstrap and unshare")
        return 0
    os.makedirs(given.trees, exist_ok=True)
    stumbles, told = promised(), {}
    for suite in given.suites:
        tree = Tree(given.trees, suite)
        told[suite] = rows = []
        for task in (*TASKS, CHECK) if given.check else TASKS:
            row = attempt(tree, task)
            rows.append(row)
            print("%-10s %7.1f s  %6.1f s of processor  %3d packages  %s%s" % (suite, row["seconds"], row["processor"], row["packages"], row["task"], ": " + row["why"] if row["why"] else ""), flush=True)
            if row["why"]:
                stumbles.append("%s: %s: %s" % (suite, row["task"], row["why"]))
                print("    " + row["output"][-1500:].replace("\n", "\n    "))
        needed = sum(row["packages"] for row in rows[1:3])
        demo = rows[2]["processor"] / os.cpu_count()
        print("%-10s %d packages to build it (at most %d), %d more for git and make; build and demo: %.0f s of processor, %.0f s on these %d" % (
            suite, needed, PACKAGES_MAX, rows[0]["packages"], rows[2]["processor"], demo, os.cpu_count()), flush=True)
        if needed > PACKAGES_MAX:
            stumbles.append("%s: %d packages" % (suite, needed))
        if demo > DEMO_MAX:
            stumbles.append("%s: build and demo take %.0f s on %d processors" % (suite, demo, os.cpu_count()))
        shutil.rmtree(tree.root)
        if given.out:
            with open(given.out, "w", encoding="utf-8") as f:
                json.dump(told, f, indent=1)
    for stumble in stumbles:
        print("not ok - " + stumble)
    print("newcomer: %d tasks on %d systems, %d stumbles" % (len(TASKS), len(given.suites), len(stumbles)))
    return 1 if stumbles else 0


if __name__ == "__main__":
    sys.exit(main())
