#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that resumes from a checkpoint and saves to it, in `cuwhy fit`: the checkpoint stays as it was, and the training finds what it saved.

    tests/torch/writes.py [--build build] [--torch FOLDER] [name…]

As the user who calls it, with and without namespaces; as root also as another user, on tmpfs, and in a root of overlays as containers have it.
A name is a part of one of the lines that are printed: `tmpfs`, `uid 1`, `without namespaces`.
"""
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OTHER = 1       # a user that every system has: PyTorch asks for its name

TRAIN = """
import os, torch
def load(): return torch.load("last.pt", map_location="cpu")
assert os.listdir(".") == ["last.pt"] and load()["weight"].abs().sum() > 1
model = torch.nn.Linear(1000, 1000)
model.load_state_dict(load())
model.cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 1000, device="cuda")).sum().backward()
    optimizer.step()
    torch.save(model.state_dict(), "last.pt")
    assert load()["weight"].abs().sum() < 1, "it does not find what it saved"
    open("finished", "w").close()
"""
MAKE = "import torch; torch.save(torch.nn.Linear(1000, 1000).state_dict(), 'last.pt')"
TMPFS = 'mkdir -p "$1" && mount -t tmpfs none "$1" && shift && exec "$@"'
OVERLAY = """mkdir -p "$1/up" "$1/work" "$1/root" && mount -t overlay over -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root"
for d in proc dev sys; do mount --rbind /$d "$1/root/$d"; done
cd "$1/root" && mkdir .old && pivot_root . .old && cd / && umount -l .old && shift && exec "$@"
"""


def digest(folder):
    found = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as stream:
            found.append((name, hashlib.sha256(stream.read()).hexdigest(), os.stat(stream.name).st_mtime_ns))
    return found


def here(options, folder, uid, namespaces):
    """In the file systems that this process sees. "" or what is wrong."""
    home, work = os.path.join(folder, "home"), os.path.join(folder, "work")
    for name in (folder, home, work):
        os.makedirs(name, exist_ok=True)
    env = dict(os.environ, PYTHONPATH=options.torch, HOME=home, PYTHONDONTWRITEBYTECODE="1", CUWHY_WRITES_MODE="")
    for name in ("CUWHY_DIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        env.pop(name, None)
    cuwhy = os.path.join(options.build, "cuwhy")
    subprocess.run([cuwhy, "run", "--gpu", "sim", "--writes=real", sys.executable, "-c", MAKE], cwd=work, env=env, check=True)
    for name in (folder, home, work, os.path.join(work, "last.pt")):
        os.chown(name, uid, -1)
    before = digest(work)
    words = [cuwhy, "fit", "--gpu", "a100-40gb", "--", sys.executable, "-c", TRAIN]
    if not namespaces:
        words = [options.forbid, *words]
    if uid != os.geteuid():
        words = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *words]
    done = subprocess.run(words, cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    left = [name for _, folders, _ in os.walk(home) for name in folders if name.startswith("cuwhy-layer")]
    if digest(work) != before:
        return "the checkpoint was changed"
    if done.returncode or "discarded" not in done.stdout or "last.pt (replaced)" not in done.stdout:
        return "status %d\n%s" % (done.returncode, done.stdout[-1500:])
    return "left behind: %s" % left if left else ""


def ways():
    """(what it is called, script around it or None, user, namespaces)"""
    root = os.geteuid() == 0
    for place, script in (("", None), ("tmpfs", TMPFS), ("a root of overlays", OVERLAY)) if root else (("", None),):
        for uid in (0, OTHER) if root else (os.geteuid(),):
            for namespaces in (True, False):
                yield "%suid %d, %s namespaces" % (place and "on %s, " % place, uid, "with" if namespaces else "without"), script, uid, namespaces


def one(options, script, uid, namespaces, scratch):
    folder = os.path.join(scratch, "user")
    if script is None:
        return here(options, folder, uid, namespaces)
    inside = os.path.join(folder if script is TMPFS else "/var/tmp", os.path.basename(scratch))
    words = [sys.executable, os.path.abspath(__file__), "--build", options.build, "--torch", options.torch, "--forbid", options.forbid,
             "--here", inside, str(uid), str(int(namespaces))]
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", folder, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return done.stdout.strip() if done.returncode else ""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", help="folder with PyTorch")
    parser.add_argument("--forbid", help=argparse.SUPPRESS)
    parser.add_argument("--here", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    return options


def main():
    options = arguments()
    if options.here:
        wrong = here(options, options.here[0], int(options.here[1]), options.here[2] == "1")
        print(wrong)
        return 1 if wrong else 0
    if not options.torch:
        sys.path.insert(0, HERE)
        import check
        options.torch, why = check.install("2.11.0")
        if not options.torch:
            print("writes: SKIPPED: PyTorch cannot be installed: %s" % why)
            return 0
    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-writes-") as scratch:
        os.chmod(scratch, 0o755)
        options.forbid = os.path.join(scratch, "forbid")
        subprocess.run([os.environ.get("CC", "cc").split()[-1], "-D_GNU_SOURCE", "-o", options.forbid, os.path.join(HERE, "..", "e2e", "programs", "no_namespaces.c")], check=True)
        for name, script, uid, namespaces in ways():
            if options.names and not any(n in name for n in options.names):
                continue
            if uid != os.geteuid() and subprocess.run(["setpriv", "--reuid", str(uid), "--clear-groups", "test", "-r", os.path.join(options.torch, "torch")],
                                                      check=False).returncode:
                print("ok - writes: %s # SKIP this user cannot read PyTorch" % name, flush=True)
                continue
            wrong = one(options, script, uid, namespaces, scratch)
            shutil.rmtree(os.path.join(scratch, "user"), ignore_errors=True)
            print("%s - writes: %s%s" % ("not ok" if wrong else "ok", name, "\n    " + wrong.replace("\n", "\n    ") if wrong else ""), flush=True)
            passed, failed = passed + (not wrong), failed + bool(wrong)
    print("writes: %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
