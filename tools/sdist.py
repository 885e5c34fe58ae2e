#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the source distribution: sdist.py FOLDER VERSION. The same files give the same bytes."""
import gzip
import io
import os
import subprocess
import sys
import tarfile

import wheel

# tests need the repository; what causes show of them is part of the program
SKIPPED = ("tests/", ".ci/", ".git")
KEPT = ("tests/gpu/cases/", "tests/gpu/faults/", "tests/gpu/memory/")
TIME = 315532800  # 1980


def files():
    """What git knows; in an unpacked source distribution, what it contains."""
    if os.path.isdir(".git") or os.path.isfile(".git"):
        names = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout.split("\0")
    else:
        names = [os.path.relpath(os.path.join(folder, name), ".") for folder, _, found in os.walk(".") for name in found
                 if not os.path.relpath(folder, ".").startswith("build") and "__pycache__" not in folder]
    return sorted(n for n in names if n and n != "PKG-INFO" and os.path.isfile(n) and (not n.startswith(SKIPPED) or n.startswith(KEPT)))


def add(archive, name, data, executable):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(data), TIME, 0o755 if executable else 0o644
    archive.addfile(entry, io.BytesIO(data))


def write(folder, version):
    top = f"cuwhy-{version}"
    path = os.path.join(folder, top + ".tar.gz")
    with open(path, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=TIME) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in files():
            add(archive, f"{top}/{name}", wheel.read(name), os.access(name, os.X_OK))
        add(archive, f"{top}/PKG-INFO", wheel.metadata(version), False)
    return path


if __name__ == "__main__":
    made = write(sys.argv[1], sys.argv[2])
    print(f"{made}: {os.path.getsize(made)} bytes")
