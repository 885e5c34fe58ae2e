#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the frameworks that tests/frameworks uses into a folder of their own: get.py FOLDER. Not PyTorch, which the tests have already
and is large: a package of its name without contents stands for it while pip resolves what the others need."""

import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGES = ["lightning", "transformers", "accelerate", "ipython", "pytest"]
STANDS_FOR = "2.11.0+elsewhere"


def empty_torch(folder):
    """A wheel that says that it is PyTorch."""
    info = f"torch-{STANDS_FOR}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, f"torch-{STANDS_FOR}-py3-none-any.whl"), "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {STANDS_FOR}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def main():
    target = sys.argv[1]
    done = os.path.join(target, "complete")
    if os.path.exists(done):
        return 0
    with tempfile.TemporaryDirectory() as folder:
        empty_torch(folder)
        got = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore",
                              "--target", target, "--upgrade", "--find-links", folder, f"torch=={STANDS_FOR}", *PACKAGES], check=False)
    if got.returncode:
        return got.returncode
    with open(done, "w", encoding="ascii"):
        return 0


if __name__ == "__main__":
    sys.exit(main())
