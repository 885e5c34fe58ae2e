#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Debian package: deb.py BUILD VERSION. What `make install` installs, under /usr, with licenses, changelog, packed man pages
and checksums; needs dpkg-deb alone. The same build gives the same bytes."""
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile

import wheel

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# who packs it, by Debian's own variables
MAINTAINER = "%s <%s>" % (os.environ.get("DEBFULLNAME", "cuwhy maintainers"), os.environ.get("DEBEMAIL", "cuwhy@localhost"))
TIME = 315532800  # 1980: packages do not know when they were built
CONTROL = """\
Package: cuwhy
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: libc6 (>= 2.28)
Suggests: python3
Section: devel
Priority: optional
Description: says why CUDA failed in a PyTorch program, and what would fit
 Runs a program unchanged and records what it asks of the GPU. When CUDA
 fails, it names the cause, the line of the program, the evidence and the
 fix: illegal accesses are traced back to their launch and tensor, memory
 that ran out to the lines that hold it.
 .
 It also explains logs, GPU core dumps and memory snapshots, checks whether
 driver, PyTorch and GPU fit together, and predicts on which GPUs a program
 fits, on simulated ones, without a GPU.
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: cuwhy
Comment: The programs contain libraries, which are linked statically, and the
 report page a script. Their licenses are in /usr/share/doc/cuwhy/licenses.

Files: *
Copyright: 2026 the authors of cuwhy
License: Apache-2.0
 On Debian systems the full text of the license is in
 /usr/share/common-licenses/Apache-2.0.
"""
CHANGELOG = """\
cuwhy ({version}) unstable; urgency=medium

  * See CHANGELOG.md.

 -- {maintainer}  Tue, 01 Jan 1980 00:00:00 +0000
"""
# what lintian would say, and why it is as it should be
OVERRIDES = """\
# programs run on systems that do not have these libraries
cuwhy: embedded-library *
# no dependencies on purpose: it is loaded into other people's programs
cuwhy: shared-library-lacks-prerequisites *
# reads which packages of the driver are installed, where apt may not be there to be asked
cuwhy: uses-dpkg-database-directly *
# DEBEMAIL was not set
cuwhy: bogus-mail-host *
cuwhy: bogus-mail-host-in-debian-changelog *
"""


def packed(data):
    return gzip.compress(data, 9, mtime=0)


def put(root, path, data, mode=0o644):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as f:
        f.write(data)
    os.chmod(full, mode)


def is_program(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def arrange(root, version):
    """What Debian wants on top of `make install`."""
    strip = os.environ.get("STRIP", "strip")
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            if is_program(path):
                subprocess.run([strip, "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", path], check=True)
            elif "/man/" in path:
                put(root, os.path.relpath(path, root) + ".gz", packed(wheel.read(path)))
                os.remove(path)
    # where Debian's zsh looks
    os.renames(os.path.join(root, "usr/share/zsh/site-functions/_cuwhy"), os.path.join(root, "usr/share/zsh/vendor-completions/_cuwhy"))
    made = os.path.join(root, "usr/lib/cuwhy/preload/made")
    if os.path.exists(made):
        os.remove(made)     # make's own
    doc = "usr/share/doc/cuwhy/"
    put(root, doc + "copyright", COPYRIGHT.encode())
    put(root, doc + "changelog.gz", packed(CHANGELOG.format(version=version, maintainer=MAINTAINER).encode()))
    put(root, doc + "CHANGELOG.md.gz", packed(wheel.read("CHANGELOG.md")))
    for name, text in wheel.licenses():
        if name != "LICENSE":
            put(root, doc + "licenses/" + name, text)
    put(root, "usr/share/lintian/overrides/cuwhy", OVERRIDES.encode())


def describe(root, version, architecture):
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    plain = [f for f in files if not os.path.islink(f)]
    sums = "".join("%s  %s\n" % (hashlib.md5(wheel.read(f)).hexdigest(), os.path.relpath(f, root)) for f in plain)
    size = sum(os.path.getsize(f) + 1023 >> 10 for f in plain)
    put(root, "DEBIAN/md5sums", sums.encode())
    put(root, "DEBIAN/control", CONTROL.format(version=version, architecture=architecture, maintainer=MAINTAINER, size=size).encode())


def main():
    build, version = sys.argv[1:3]
    architecture = ARCHITECTURES[os.environ.get("MACHINE") or os.uname().machine]
    path = f"{build}/cuwhy_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "root")
        subprocess.run(["make", "-s", "--no-print-directory", "install-files", f"B={build}", f"DESTDIR={root}", "PREFIX=/usr"], check=True,
                       stdout=subprocess.DEVNULL)
        arrange(root, version)
        describe(root, version, architecture)
        for folder, names, files in os.walk(root):
            os.chmod(folder, 0o755)
            for name in names + files:
                os.utime(os.path.join(folder, name), (TIME, TIME), follow_symlinks=False)
        os.utime(root, (TIME, TIME))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, SOURCE_DATE_EPOCH=str(TIME)))
    os.chmod(path, 0o644)
    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
