#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make check` downloads may fail: then it is tried again, or skipped aloud, and the check goes on. check.py. No network: apt-get and npm are stand-ins."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# counts its calls and fails as often as it is told to
APT = """#!/bin/sh
echo "$*" >>"$SCRATCH/calls"
case "$*" in *" install "*)
	n=$(grep -c ' install ' "$SCRATCH/calls")
	[ "$n" -gt "$FAILS" ] || { echo 'E: Failed to fetch some package' >&2; exit 100; } ;;
esac
"""
failures, passed = [], 0


def claim(name, ok, *why):
    global passed
    if ok:
        passed += 1
    else:
        failures.append(name)
        print("not ok - %s\n    %s" % (name, " ".join(str(w)[-1500:] for w in why)))


def put(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def run(scratch, *words, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CUWHY_RULES_FIRED")}
    env.update(PATH=scratch + ":" + env["PATH"], SCRATCH=scratch, DEPS_PAUSE="0", **more)
    return subprocess.run(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          timeout=300)


def check_apt(scratch):
    put(scratch, "apt-get", APT)
    put(scratch, "id", "#!/bin/sh\necho 0\n")
    for fails, status in ((0, 0), (1, 0), (9, 2)):
        put(scratch, "calls", "")
        done = run(scratch, "sh", "tools/deps.sh", FAILS=str(fails), CC="no-such-compiler")
        with open(os.path.join(scratch, "calls"), encoding="utf-8") as f:
            calls = f.read().splitlines()
        claim("packages that fail to download %d times: status %d" % (fails, status), done.returncode == status, done.returncode, done.stdout)
        claim("apt-get is told to be patient", calls and all("Acquire::Retries=3" in c and "DPkg::Lock::Timeout" in c for c in calls), calls)
    claim("in the end it says which packages", "cannot install these packages: gcc" in done.stdout, done.stdout)


def check_skipped(scratch):
    """Goals of `make check` without the packages that they need."""
    put(scratch, "npm", "#!/bin/sh\nexit 1\n")
    build = os.path.join(scratch, "build")
    goals = {"check-unit": "unit tests", "check-browser": "the page in a browser"}
    for goal, what in goals.items():
        done = run(scratch, "make", "-s", "-o", "parts", goal, "NEEDS=false", "B=" + build)
        claim("%s without its packages is skipped aloud" % goal, done.returncode == 0 and "SKIPPED: " + what in done.stdout, done.returncode, done.stdout)
    with open(os.path.join(build, "skipped"), encoding="utf-8") as f:
        kept = f.read()
    claim("the end of the check names what was skipped", all("SKIPPED: " + what in kept for what in goals.values()), kept)


def main():
    for check in (check_apt, check_skipped):
        with tempfile.TemporaryDirectory() as scratch:
            check(scratch)
    print("network: %d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
