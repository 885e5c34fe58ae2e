#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is given to others: check.py BUILD. The source distribution, the wheel that pip builds from it, and the Debian package: complete, the
same bytes when built in another folder, and nothing that auditwheel, twine and lintian object to. Tools that are not installed are skipped, and
that is said."""
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEWEST = (2, 28)
failures, passed = [], 0


def claim(name, ok, *why):
    global passed
    if ok:
        passed += 1
    else:
        failures.append(name)
        print("not ok - %s\n    %s" % (name, " ".join(str(w)[-2000:] for w in why)))


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **more)


def tool(name):
    """The command for a tool: a program, or a module of this Python."""
    if shutil.which(name):
        return [name]
    if run(sys.executable, "-m", name, "--version").returncode == 0:
        return [sys.executable, "-m", name]
    print("packages: %s is not installed, what it would say is not known" % name)
    return None


def make(tree, *goals):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    cc = ["CC=" + os.environ["CC"]] if os.environ.get("CC") else []
    return run("make", "-j%d" % (os.cpu_count() or 1), "DEPS=name", *cc, *goals, cwd=tree, env=dict(env, DEPS="name"))


def unpacked(archive, folder):
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    tree = glob.glob(os.path.join(folder, "cuwhy-*"))[0]
    # what draws the charts was fetched once
    shutil.copytree(os.path.join(ROOT, "build", "web"), os.path.join(tree, "build", "web"), ignore=shutil.ignore_patterns("node_modules")) \
        if os.path.isdir(os.path.join(ROOT, "build", "web")) else None
    return tree


def main():
    scratch = tempfile.mkdtemp(prefix="cuwhy-packages-")
    try:
        check(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("packages: %d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


def check(scratch):
    made = make(ROOT, "sdist", "B=" + sys.argv[1])
    source = sorted(glob.glob(os.path.join(ROOT, sys.argv[1], "cuwhy-*.tar.gz")))[-1]
    claim("there is a source distribution", made.returncode == 0, made.stdout)
    with tarfile.open(source) as tar:
        names = {n.split("/", 1)[1] for n in tar.getnames()}
    claim("it has what pip needs", {"PKG-INFO", "pyproject.toml", "tools/backend.py", "Makefile", "LICENSE"} <= names, sorted(names)[:20])
    # two folders of different lengths, the first by pip
    first, second = (unpacked(source, os.path.join(scratch, name)) for name in ("a", "another-folder"))
    env = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1")
    env.pop("MAKEFLAGS", None)
    out = os.path.join(scratch, "out")
    pip = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", out, first, env=env)
    wheels = glob.glob(os.path.join(out, "*.whl"))
    claim("pip builds the wheel from it, without an index", pip.returncode == 0 and len(wheels) == 1, pip.stdout)
    again = make(second, "deb", "wheel")
    claim("make builds the wheel and the Debian package from it", again.returncode == 0, again.stdout)
    other = glob.glob(os.path.join(second, "build", "*.whl"))
    if wheels and other:
        claim("built in another folder, the wheel is the same, byte for byte", filecmp.cmp(wheels[0], other[0], False), wheels, other)
        check_wheel(wheels[0], source)
    debs = glob.glob(os.path.join(second, "build", "cuwhy_*.deb"))
    if debs:
        kept = shutil.copy(debs[0], scratch)
        shutil.move(second, os.path.join(scratch, "moved"))
        moved = os.path.join(scratch, "moved")
        claim("and packed again, so is the Debian package",
              make(moved, "deb").returncode == 0 and filecmp.cmp(kept, glob.glob(os.path.join(moved, "build", "cuwhy_*.deb"))[0], False))
        check_deb(kept)


def check_wheel(wheel, source):
    audit = tool("auditwheel")
    if audit:
        said = run(*audit, "show", wheel).stdout
        found = re.search(r'platform tag:\s+"manylinux_(\d+)_(\d+)_', said)
        claim("auditwheel finds the tag that it has, or an older one", found and tuple(map(int, found.groups())) <= NEWEST, said)
    twine = tool("twine")
    if twine:
        said = run(*twine, "check", "--strict", wheel, source)
        claim("twine has nothing to say", said.returncode == 0 and "WARNING" not in said.stdout, said.stdout)


def check_deb(deb):
    names = run("dpkg-deb", "-c", deb).stdout
    for path in ("usr/bin/cuwhy", "usr/lib/cuwhy/libcuwhy-rec.so", "usr/share/man/man1/cuwhy.1.gz", "usr/share/bash-completion/completions/cuwhy",
                 "usr/share/zsh/vendor-completions/_cuwhy", "usr/share/fish/vendor_completions.d/cuwhy.fish", "usr/share/doc/cuwhy/copyright",
                 "usr/share/doc/cuwhy/licenses/jansson", "usr/share/doc/cuwhy/licenses/uplot"):
        claim("the Debian package has " + path, "./" + path in names, names)
    root = os.path.join(os.path.dirname(deb), "installed")
    run("dpkg-deb", "-x", deb, root)
    said = run(os.path.join(root, "usr/bin/cuwhy"), "run", "--gpu", "sim:tiny", sys.executable, "-c",
               "import ctypes; c = ctypes.CDLL('libcuda.so.1'); exit(c.cuInit(0))")
    claim("what it installs runs", said.returncode == 0, said.stdout)
    lintian = tool("lintian")
    if lintian:
        said = run(*lintian, "--fail-on", "error,warning", "--tag-display-limit", "0", deb)
        claim("lintian has nothing to say", said.returncode == 0, said.stdout)


if __name__ == "__main__":
    sys.exit(main())
