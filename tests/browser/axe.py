# SPDX-License-Identifier: Apache-2.0
"""axe-core, which finds what keeps people with disabilities from using a page. It is fetched once into BUILD/web with npm, accepted only
with the checksum below, and never part of a page."""
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile

PACKAGE = "axe-core@4.14.0"
CHECKSUM = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
SECONDS = 60

# Serious and critical findings: [rule, what it says, where].
FIND = r"""
return axe.run(document, { resultTypes: ["violations"], elementRef: false }).then((found) =>
  found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.target.join(" ") + ": " + n.html.slice(0, 120))]));
"""


def right(data):
    return hashlib.sha256(data).hexdigest() == CHECKSUM


def source_of(build):
    """The program; None where it cannot be had."""
    path = os.path.join(build, "web", "axe.min.js")
    if os.path.isfile(path):
        with open(path, "rb") as f:
            data = f.read()
        if right(data):
            return data.decode("utf-8")
    npm = shutil.which("npm")
    if not npm:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        try:
            subprocess.run([npm, "pack", "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=20000", PACKAGE], cwd=scratch, check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS)
            archive = next(os.path.join(scratch, name) for name in os.listdir(scratch) if name.endswith(".tgz"))
            with tarfile.open(archive) as files:
                data = files.extractfile("package/axe.min.js").read()
        except (OSError, subprocess.SubprocessError, StopIteration, KeyError, tarfile.TarError):
            return None
    if not right(data):
        return None
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return data.decode("utf-8")


def findings(browser, program):
    """What is serious on the page that is open. The program runs as a debugger's, which the page's policy does not concern."""
    browser.cdp("Runtime.evaluate", expression=program)
    return browser.run(FIND)
