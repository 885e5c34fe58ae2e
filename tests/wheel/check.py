#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python wheel and the static program: check.py BUILD WHEEL. What each needs from a system, what the wheel contains,
and that it works when installed into an empty environment, with nothing else in PATH."""

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

NEWEST = (2, 28)
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}  # all of them glibc's own
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

failures = []
passed = 0


def claim(name, ok, why=""):
    global passed
    if ok:
        passed += 1
    else:
        failures.append(name)
        print(f"not ok - {name}\n    {str(why)[-1500:]}")


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=600, **more)


def needed_versions(path):
    """The glibc versions that a file needs: the table of needed versions, without those that it defines itself."""
    out = run("readelf", "-V", "-W", path).stdout
    needs = out[out.find("Version needs section"):] if "Version needs section" in out else ""
    return {tuple(int(n) for n in v.split(".")) for v in re.findall(r"Name: GLIBC_([0-9.]+)", needs)}, needs


def check_elf(wheel, folder):
    """Everything compiled starts with glibc 2.28 and nothing else."""
    n = 0
    for name in wheel.namelist():
        if not wheel.read(name).startswith(b"\x7fELF"):
            continue
        n += 1
        path = wheel.extract(name, folder)
        versions, needs = needed_versions(path)
        short = os.path.basename(path) if "lib32" not in name else "lib32/" + os.path.basename(path)
        claim(f"{short} needs no newer glibc than 2.28", all(v <= NEWEST for v in versions), versions)
        claim(f"{short} asks for no private function of glibc", "GLIBC_PRIVATE" not in needs, needs)
        libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", "-W", path).stdout))
        if "/sim/" in name:
            libraries -= {"libcuda.so.1"}   # stand-ins call the simulated driver
        claim(f"{short} needs glibc's libraries alone", libraries <= LIBRARIES, libraries)
        claim(f"{short} brings no path of the machine it was built on",
              ROOT.encode() not in wheel.read(name) and set(re.findall(r"\(R\w*PATH\).*\[(.*)\]", run("readelf", "-d", path).stdout)) <= {"$ORIGIN"}, ROOT)
    claim("the wheel has the program, the probe, the recorder and the simulated GPU", n >= 5, n)


def check_record(wheel):
    """RECORD lists every file with its digest."""
    name = [n for n in wheel.namelist() if n.endswith(".dist-info/RECORD")][0]
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(name).decode()))}
    wrong = [n for n in wheel.namelist() if n not in rows]
    for file, (digest, size) in rows.items():
        if file == name:
            continue
        data = wheel.read(file)
        want = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if digest != want or int(size) != len(data):
            wrong.append(file)
    claim("RECORD has every file, its digest and its size", not wrong, wrong)
    want = {f[7:] for f in (os.path.relpath(os.path.join(d, f), ROOT) for d, _, fs in os.walk(os.path.join(ROOT, "python"))
                            for f in fs) if f.endswith((".py", "py.typed"))}
    claim("all of python/cuwhy is in it", want <= set(wheel.namelist()), want - set(wheel.namelist()))


def check_documents(wheel, build):
    """Man pages and completions are those of the build, a page for each command."""
    share = [n for n in wheel.namelist() if n.endswith(".dist-info/RECORD")][0].split(".dist-info")[0] + ".data/data/share/"
    commands = run(os.path.join(build, "cuwhy"), "_document", "commands").stdout.split()
    pages = ["cuwhy.1"] + [f"cuwhy-{command}.1" for command in commands]
    want = {"man/man1/" + page: "man/" + page for page in pages}
    want.update({"bash-completion/completions/cuwhy": "completions/cuwhy.bash", "zsh/site-functions/_cuwhy": "completions/_cuwhy",
                 "fish/vendor_completions.d/cuwhy.fish": "completions/cuwhy.fish"})
    have = {n[len(share):] for n in wheel.namelist() if n.startswith(share)}
    claim("it has a man page for each command, and completions for three shells", have == set(want) and len(commands) > 5, have ^ set(want))
    other = [n for n in have & set(want) if wheel.read(share + n) != open(os.path.join(build, want[n]), "rb").read()]
    claim("they are what `make install` installs", not other, other)


def check_again(build, path, folder):
    """The same parts give the same bytes."""
    version = os.path.basename(path).split("-")[1]
    again = os.path.join(folder, "again")
    os.makedirs(again)
    for part in ("cuwhy", "cuwhy-probe", "libcuwhy-rec.so", "libcuwhy-writes.so", "fit", "lib32", "preload", "sim", "man", "completions"):
        os.symlink(os.path.join(os.path.abspath(build), part), os.path.join(again, part))
    made = run(sys.executable, "tools/wheel.py", again, version, cwd=ROOT)
    other = os.path.join(again, os.path.basename(path))
    same = os.path.isfile(other) and open(other, "rb").read() == open(path, "rb").read()
    claim("made again it is the same, byte for byte", same, made.stderr)


def files_of(folder):
    """All files except Python's caches. pip may leave empty folders behind."""
    return {os.path.join(d, f) for d, _, fs in os.walk(folder) if "__pycache__" not in d for f in fs}


def environment(folder, path):
    """An empty environment with the wheel in it, and what was there before; None if this Python cannot create one."""
    venv = os.path.join(folder, "a venv")
    made = run(sys.executable, "-m", "venv", venv)
    if made.returncode != 0:
        print("wheel: the installation was not tried, this Python has no venv: " + made.stdout.strip()[:100])
        return None, None
    python = os.path.join(venv, "bin", "python")
    before = files_of(venv)
    got = run(python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", "--no-compile", path)
    claim("pip installs it without any index", got.returncode == 0, got.stderr)
    return venv if got.returncode == 0 else None, before


def check_installed(venv, before, folder, path):
    bins = os.path.join(venv, "bin")
    cuwhy, python = os.path.join(bins, "cuwhy"), os.path.join(bins, "python")
    env = {"PATH": bins, "HOME": folder, "CUWHY_DIR": os.path.join(folder, "recordings"), "LC_ALL": "C"}
    os.makedirs(os.path.join(folder, "work"))
    for name in ("cases/fault_oob.py", "site-packages/cudrv.py"):
        shutil.copy(os.path.join(ROOT, "tests/e2e", name), os.path.join(folder, "work"))

    def there(*command):
        return run(*command, env=env, cwd=os.path.join(folder, "work"))

    said = json.loads(there(cuwhy, "--version", "--json").stdout)
    real = os.path.realpath(venv)
    claim("it finds all its parts inside the environment",
          all(p is None or p.startswith(real) for p in said["parts"].values()) and said["parts"]["recorder"], said)
    got = there(cuwhy, "run", "--json", "--gpu", "sim:h200", "python", "fault_oob.py")
    last = got.stderr.strip().splitlines()[-1] if got.stderr.strip() else ""
    verdict = json.loads(last) if last.startswith("{") else {}
    claim("`cuwhy run --gpu sim:h200` explains a fault", verdict.get("cause") == "illegal-access-out-of-bounds" and
          verdict.get("certainty") == "certain" and got.returncode == 1, got.stderr)
    got = there(cuwhy, "doctor", "--json")
    claim("`cuwhy doctor` judges this machine", got.stdout.startswith("{") and "checks" in json.loads(got.stdout), got.stdout)
    got, plain = there(python, "-m", "cuwhy", "explain", "700"), there(cuwhy, "explain", "700")
    claim("`python -m cuwhy` is `cuwhy`", "CUDA_ERROR_ILLEGAL_ADDRESS" in got.stdout and got.stdout == plain.stdout and
          got.returncode == plain.returncode, got.stderr)
    ignored = "import signal; print(signal.getsignal(signal.SIGPIPE), open('/proc/self/status').read().split('SigIgn:')[1].split()[0])"
    direct = there(cuwhy, "run", python, "-c", ignored).stdout
    claim("and what it runs finds the same signals ignored", there(python, "-m", "cuwhy", "run", python, "-c", ignored).stdout ==
          direct != "", direct)
    got = there(python, "-c", "import cuwhy; print(cuwhy.explain('RuntimeError: CUDA error: out of memory').error.code)")
    claim("`import cuwhy` explains a text", got.stdout.strip() == "2", got.stderr)
    got = there(python, "-c", "from importlib import metadata as m; d = m.distribution('cuwhy'); "
                "print([e.value for e in d.entry_points if e.group == 'pytest11'], d.requires)")
    claim("it brings the plugin of pytest and needs no other package", got.stdout.strip() == "['cuwhy.pytest_plugin'] None" or
          sys.version_info < (3, 8), got.stdout + got.stderr)
    share = os.path.join(venv, "share")
    claim("man pages and completions are in the environment's share", all(os.path.isfile(os.path.join(share, f)) for f in (
        "man/man1/cuwhy-run.1", "bash-completion/completions/cuwhy", "zsh/site-functions/_cuwhy",
        "fish/vendor_completions.d/cuwhy.fish")), os.listdir(share) if os.path.isdir(share) else "no share")
    target = os.path.join(folder, "target")
    there(python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", "--target", target, path)
    said = run(python, "-m", "cuwhy", "--version", "--json", env=dict(env, PYTHONPATH=target), cwd=folder).stdout
    claim("so it does in a folder of its own (--target)", (json.loads(said)["parts"]["recorder"] or "").startswith(target), said)
    there(python, "-m", "pip", "uninstall", "-q", "-y", "cuwhy")
    left = files_of(venv) ^ before
    claim("pip takes all of it away again, and nothing else", not left, left)


def check_static(build, folder):
    """The static program starts in an empty system, and finds its parts next to it."""
    path = os.path.join(os.path.abspath(build), "cuwhy-static")
    headers, dynamic = run("readelf", "-lW", path).stdout, run("readelf", "-dW", path).stdout
    claim("the static program needs no loader and no library", "INTERP" not in headers and "(NEEDED)" not in dynamic, headers)
    env = {"PATH": os.environ["PATH"], "HOME": folder, "CUWHY_DIR": os.path.join(folder, "static-recordings"),
           "PYTHONPATH": os.path.join(ROOT, "tests/e2e/site-packages")}
    got = run(path, "run", "--json", "--gpu", "sim:h200", sys.executable, "tests/e2e/cases/fault_oob.py", env=env, cwd=ROOT)
    claim("its `run` explains a fault", '"cause":"illegal-access-out-of-bounds"' in got.stderr, got.stderr)
    said = json.loads(run(path, "--version", "--json", env=env).stdout)["machine"]["glibc"]
    claim("it does not take its own glibc for the machine's", said == os.confstr("CS_GNU_LIBC_VERSION").split()[1], said)
    if os.geteuid() != 0:
        print("wheel: the static program was not tried in an empty folder, that needs root")
        return
    empty = os.path.join(folder, "empty")
    os.makedirs(empty)
    shutil.copy(path, empty)
    got = run("/cuwhy-static", "explain", "700", preexec_fn=lambda: os.chroot(empty), cwd="/")
    claim("it starts in a system that is empty", "CUDA_ERROR_ILLEGAL_ADDRESS" in got.stdout, got.stderr)


def main():
    build, path = sys.argv[1:3]
    path = os.path.abspath(path)
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        with zipfile.ZipFile(path) as wheel:
            check_elf(wheel, os.path.join(folder, "files"))
            check_record(wheel)
            check_documents(wheel, build)
        check_again(build, path, folder)
        check_static(build, folder)
        venv, before = environment(folder, path)
        if venv:
            check_installed(venv, before, folder, path)
    print(f"wheel: {passed} passed, {len(failures)} failed; {os.path.getsize(path) // 1000} kB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
