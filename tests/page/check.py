#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How tools/page.py comes by what draws the charts, with a pip that hands out what the test wants: check.py. No network."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = ("uPlot.iife.min.js", "uPlot.min.css")
PIP = """
import os, sys, zipfile
if "--version" in sys.argv:
    sys.exit(0)
given = os.environ["GIVEN"]
if not os.path.isdir(given):
    sys.exit(1)
with zipfile.ZipFile(os.path.join(sys.argv[sys.argv.index("-d") + 1], "package.whl"), "w") as wheel:
    for name in os.listdir(given):
        wheel.write(os.path.join(given, name), "some/folder/" + name)
"""
failures, passed = [], 0


def claim(name, ok, *why):
    global passed
    if ok:
        passed += 1
    else:
        failures.append(name)
        print("not ok - %s\n    %s" % (name, " ".join(str(w)[-1500:] for w in why)))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def page(scratch, given, *options):
    """Builds the page with a pip that has the files of `given`; returns the run and the page."""
    folder = tempfile.mkdtemp(dir=scratch)
    made = os.path.join(folder, "page.html")
    # no npm in this PATH
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/page.py"), os.path.join(folder, "web"), made, *options],
                          env={"PATH": os.path.join(scratch, "none"), "PYTHONPATH": os.path.join(scratch, "modules"),
                               "PYTHONDONTWRITEBYTECODE": "1", "GIVEN": given}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    return done, read(made) if os.path.isfile(made) else b""


def main():
    with tempfile.TemporaryDirectory() as scratch:
        # written once: a module that is written again within a second, with the same length, is taken from Python's cache
        os.makedirs(os.path.join(scratch, "modules"))
        with open(os.path.join(scratch, "modules", "pip.py"), "w", encoding="utf-8") as f:
            f.write(PIP)
        wrong = os.path.join(scratch, "wrong")
        os.makedirs(wrong)
        for name in FILES:
            with open(os.path.join(wrong, name), "w", encoding="utf-8") as f:
                f.write("var uPlot = document.title = 'planted';")
        done, without = page(scratch, wrong)
        claim("what has another checksum is not put into the page",
              done.returncode == 0 and b"planted" not in without and b"const uPlot = null;" in without, done.stdout)
        claim("one line says so", done.stdout.count("\n") == 1 and "without charts" in done.stdout and "another checksum" in done.stdout, done.stdout)
        done, again = page(scratch, os.path.join(scratch, "nothing"))
        claim("what cannot be downloaded neither", done.returncode == 0 and again == without and "cannot download" in done.stdout, done.stdout)
        done, _ = page(scratch, wrong, "--charts", "yes")
        claim("with --charts yes it is an error", done.returncode == 1 and "no charts" in done.stdout, done.stdout)
        done, none = page(scratch, wrong, "--charts", "no")
        claim("with --charts no it is silent", done.returncode == 0 and not done.stdout and none == without, done.stdout)
        fetched = os.path.join(ROOT, "build", "web")
        if all(os.path.isfile(os.path.join(fetched, name)) for name in FILES):
            given = os.path.join(scratch, "right")
            os.makedirs(given)
            for name in FILES:
                os.symlink(os.path.join(fetched, name), os.path.join(given, name))
            done, whole = page(scratch, given)
            claim("the right files are accepted, and their license is in the page",
                  not done.stdout and b"const uPlot = null;" not in whole and b"Leon Sorokin" in whole, done.stdout)
        else:
            print("page: uPlot was not fetched, so a page with charts is not built here")
    print("page: %d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
