#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that hang, and programs that only look like it, under `cuwhy explain --pid`: run.py [--build BUILD] [--json FILE] [NAME...]

strangers.jsonl has programs by somebody who had not read the rules, aimed at weak spots: for each the Python it is for, whether it is hung,
and in words why. Each is started, looked at once and killed. Told apart are:

  right    a hung one is told as hung, a healthy one is not
  weak     `possible`, of either kind: nobody is misled, nobody is helped much
  missed   a hung one is not told as hung
  ALARM    a healthy one is told as hung, likely or certain: the worst

Those that need PyTorch run if TORCH names a folder with one (PYTHONPATH); Pythons are those of pyenv and of PATH."""
import argparse
import collections
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SETTLES, TORCH_SETTLES = 2, 14      # seconds until a program does what it does for good


def find_python(version):
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % version)))
    return found[-1] if found else shutil.which("python" + version)


def start(program, folder):
    """The process, or None where its Python or PyTorch is not here."""
    torch = program["python"] == "torch"
    python = find_python("3.11" if torch else program["python"])
    if not python or (torch and not os.environ.get("TORCH")):
        return None
    env = dict(os.environ, **({"PYTHONPATH": os.environ["TORCH"]} if torch else {}))
    path = os.path.join(folder, "program.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(program["text"])
    process = subprocess.Popen([python, "-u", path], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(TORCH_SETTLES if torch else SETTLES)
    return process


def look(build, program):
    """(what came of it, the answer's title)"""
    with tempfile.TemporaryDirectory(prefix="cuwhy-hangs-") as folder:
        process = start(program, folder)
        if not process:
            return "skipped", "no Python or PyTorch for it"
        try:
            if process.poll() is not None:
                return "skipped", "it ended by itself, with %d" % process.returncode
            run = subprocess.run([os.path.join(build, "cuwhy"), "explain", "--json", "--pid", str(process.pid)], capture_output=True, text=True)
        finally:
            with contextlib.suppress(ProcessLookupError):       # it and all that it started have ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    told = json.loads(run.stdout)
    return judge(program["truth"] == "hung", told), told.get("title") or told["failure"]["message"]


def judge(hung, told):
    if told.get("cause", "none") in (None, "none"):
        return "missed" if hung else "right"
    if told["certainty"] == "possible":
        return "weak"
    return "right" if hung else "ALARM"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json", metavar="FILE", help="each program's answer")
    parser.add_argument("names", nargs="*", help="only programs whose name contains one of these")
    given = parser.parse_args()
    counts, all_ = collections.Counter(), []
    with open(os.path.join(HERE, "strangers.jsonl"), encoding="utf-8") as f:
        programs = [p for p in map(json.loads, f) if not given.names or any(n in p["name"] for n in given.names)]
    for program in programs:
        result, title = look(os.path.abspath(given.build), program)
        counts[program["truth"], result] += 1
        all_.append({"name": program["name"], "truth": program["truth"], "result": result, "title": title})
        print("%-8s %-8s %-24s Python %-6s %s\n%18s%s" % (result, program["truth"], program["name"], program["python"], program["what"], "", title), flush=True)
    for truth in ("hung", "healthy"):
        print("%s: %s" % (truth, ", ".join("%s %d" % (result, n) for (of, result), n in sorted(counts.items()) if of == truth)))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as f:
            json.dump(all_, f, indent=1)
    return 1 if counts["healthy", "ALARM"] or counts["hung", "missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
