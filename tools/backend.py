# SPDX-License-Identifier: Apache-2.0
"""What pip asks to build cuwhy from its sources (PEP 517): needs make, a C compiler and a few libraries, and no other Python package."""
import os
import shutil
import subprocess
import sys

import sdist
import wheel


def version():
    return wheel.read("VERSION").decode().strip()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    # pip must not change the system: what is missing is named, not installed
    env = dict(os.environ, DEPS="name")
    if subprocess.run(["sh", "tools/deps.sh"], env=env).returncode:
        raise SystemExit("cuwhy cannot be built: see above")
    made = f"cuwhy-{version()}-{wheel.TAG}.whl"
    subprocess.run(["make", f"-j{os.cpu_count() or 1}", f"PYTHON={sys.executable}", f"build/{made}"], env=env, check=True)
    shutil.copy(os.path.join("build", made), wheel_directory)
    return made


def build_sdist(sdist_directory, config_settings=None):
    return os.path.basename(sdist.write(sdist_directory, version()))


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
