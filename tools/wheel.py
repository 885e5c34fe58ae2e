#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Python wheel: wheel.py BUILD VERSION. The same input gives the same bytes.

The program becomes a script of the wheel, so that `cuwhy` in an environment's bin is the program itself and not a
Python script that starts it; its parts go to libexec/cuwhy next to it (`pip install --target` would lose what is in lib), man pages
and completions to share, as with `make install`."""

import base64
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

TAG = "py3-none-manylinux_2_28_" + (os.environ.get("MACHINE") or os.uname().machine)
PARTS = ["cuwhy-probe", "libcuwhy-rec.so", "libcuwhy-writes.so", "lib32/libcuwhy-rec.so"]
OPTIONAL = {"lib32/libcuwhy-rec.so"}  # where the compiler cannot make it
# the build's completions, and where shells look for them
COMPLETIONS = [("cuwhy.bash", "bash-completion/completions/cuwhy"), ("_cuwhy", "zsh/site-functions/_cuwhy"),
               ("cuwhy.fish", "fish/vendor_completions.d/cuwhy.fish")]
# what is linked into the program: its licenses must be shipped with it
LINKED = ["jansson", "libiberty", "zlib", "liblzma", "libzstd"]
PACKAGES = {"jansson": "libjansson-dev", "libiberty": "libiberty-dev", "zlib": "zlib1g-dev", "liblzma": "liblzma-dev", "libzstd": "libzstd-dev"}
TIME = (1980, 1, 1, 0, 0, 0)

METADATA = """\
Metadata-Version: 2.1
Name: cuwhy
Version: {version}
Summary: Says why CUDA failed in a PyTorch program: the cause, the line, the evidence and the fix
License: Apache-2.0
Keywords: cuda,pytorch,gpu,debugging,out-of-memory
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Framework :: Pytest
Classifier: Intended Audience :: Developers
Classifier: Intended Audience :: Science/Research
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Topic :: Software Development :: Debuggers
Classifier: Typing :: Typed
{links}Requires-Python: >=3.8
Description-Content-Type: text/markdown

"""
LINKS = {"Source": "", "Documentation": "/tree/main/docs", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}
WHEEL = f"Wheel-Version: 1.0\nGenerator: cuwhy\nRoot-Is-Purelib: false\nTag: {TAG}\n"
ENTRY_POINTS = "[pytest11]\ncuwhy = cuwhy.pytest_plugin\n"


def stripped(path, scratch):
    """The file without debug information."""
    copy = os.path.join(scratch, "part")
    shutil.copyfile(path, copy)
    subprocess.run([os.environ.get("STRIP", "strip"), "--strip-unneeded", copy], check=True)
    with open(copy, "rb") as f:
        return f.read()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def metadata(version):
    """The package's description of itself; PROJECT_URL is where it lives, if that is known."""
    home = os.environ.get("PROJECT_URL", "").rstrip("/")
    links = "".join(f"Project-URL: {name}, {home}{rest}\n" for name, rest in LINKS.items()) if home else ""
    return METADATA.format(version=version, links=links).encode() + read("README.md")


def licenses():
    """Yields (name, text) of what is linked in, or part of the page; a missing one stops the build of a package."""
    for name in LINKED:
        path = f"/usr/share/doc/{PACKAGES[name]}/copyright"
        if not os.path.isfile(path):
            if os.path.isfile("/etc/debian_version"):
                raise SystemExit(f"wheel.py: the license of {name} is not at {path}")
            continue    # elsewhere the libraries' packages have them in other places
        yield name, read(path)
    yield "uplot", read("web/uplot.license")
    yield "LICENSE", read("LICENSE")


def contents(build, version, scratch):
    """Yields (name in the wheel, bytes, executable)."""
    data, info = f"cuwhy-{version}.data", f"cuwhy-{version}.dist-info"
    for path in glob.glob("python/cuwhy/*.py") + ["python/cuwhy/py.typed"]:
        yield "cuwhy/" + os.path.basename(path), read(path), False
    yield f"{data}/scripts/cuwhy", stripped(f"{build}/cuwhy", scratch), True
    for part in PARTS + sorted("sim/" + name for name in os.listdir(f"{build}/sim")):
        if part in OPTIONAL and not os.path.isfile(f"{build}/{part}"):
            continue
        yield f"{data}/data/libexec/cuwhy/{part}", stripped(f"{build}/{part}", scratch), part == "cuwhy-probe"
    for path in glob.glob(f"{build}/fit/*.py"):
        yield f"{data}/data/libexec/cuwhy/fit/{os.path.basename(path)}", read(path), False
    # links in the build; a wheel has none
    for path in glob.glob(f"{build}/preload/**/*.so", recursive=True):
        yield f"{data}/data/libexec/cuwhy/{os.path.relpath(path, build)}", stripped(path, scratch), False
    for path in glob.glob(f"{build}/man/*.1"):
        yield f"{data}/data/share/man/man1/{os.path.basename(path)}", read(path), False
    for name, place in COMPLETIONS:
        yield f"{data}/data/share/{place}", read(f"{build}/completions/{name}"), False
    for name, text in licenses():
        yield f"{info}/licenses/{name}", text, False
    yield f"{info}/METADATA", metadata(version), False
    yield f"{info}/WHEEL", WHEEL.encode(), False
    yield f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False


def add(wheel, name, data, executable):
    entry = zipfile.ZipInfo(name, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    wheel.writestr(entry, data, compresslevel=9)


def write(path, files, version):
    record = f"cuwhy-{version}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data, executable in files:
            add(wheel, name, data, executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
        add(wheel, record, ("".join(lines) + f"{record},,\n").encode(), False)


def main():
    build, version = sys.argv[1:3]
    path = f"{build}/cuwhy-{version}-{TAG}.whl"
    with tempfile.TemporaryDirectory() as scratch:
        # the package's metadata comes last, so that it can be read from the end of the file
        files = sorted(contents(build, version, scratch), key=lambda f: (".dist-info/" in f[0], f[0]))
    write(path + ".new", files, version)
    os.replace(path + ".new", path)
    for old in glob.glob(f"{build}/cuwhy-*-{TAG}.whl"):
        if old != path:
            os.remove(old)  # `pip install build/cuwhy-*.whl` is for one
    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
