# SPDX-License-Identifier: Apache-2.0
"""Which program the package runs: its own wherever it was installed, and never one that others could have put there."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from helpers import PACKAGE

STRANGER = 54399
ASK = "from cuwhy import _program\ntry: print(_program.program())\nexcept _program.CuwhyError as e: print('refused:', e)"


class Installed(unittest.TestCase):
    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        os.chmod(self.root, 0o755)

    def folder(self, name, mode=0o755):
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return path

    def program(self, folder, says="ours"):
        """A program below the root."""
        path = os.path.join(self.folder(folder), "cuwhy")
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\necho {says}\n")
        os.chmod(path, 0o755)
        return path

    def package(self, site, script=None, recorded=None):
        """The package in a folder; with `script`, the list of installed files says that the program is at `recorded`."""
        shutil.copytree(os.path.join(PACKAGE, "cuwhy"), os.path.join(self.folder(site), "cuwhy"), ignore=shutil.ignore_patterns("__pycache__"))
        if script:
            info = self.folder(os.path.join(site, "cuwhy-1.dist-info"))
            with open(script, "rb") as f:
                digest = base64.urlsafe_b64encode(hashlib.sha256(f.read()).digest()).rstrip(b"=").decode()
            with open(os.path.join(info, "METADATA"), "w") as f:
                f.write("Metadata-Version: 2.1\nName: cuwhy\nVersion: 1\n")
            with open(os.path.join(info, "RECORD"), "w") as f:
                f.write(f"{recorded},sha256={digest},{os.path.getsize(script)}\ncuwhy/__init__.py,,\n")
        return os.path.join(self.root, site)

    def found(self, on_path, PATH="/nowhere", cwd="/"):
        env = {"PYTHONPATH": on_path, "PATH": PATH, "PYTHONDONTWRITEBYTECODE": "1", "HOME": self.root}
        got = subprocess.run([sys.executable, "-c", ASK], env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             universal_newlines=True, timeout=300)
        return got.stdout.strip()

    def test_an_environment_has_its_own_program(self):
        for site in ("env/lib/python3.12/site-packages", "prefix/local/lib/python3.12/dist-packages"):
            ours = self.program(os.path.join(site, "../../../bin"))
            self.assertEqual(self.found(self.package(site, ours, "../../../bin/cuwhy")), os.path.realpath(ours))

    def test_so_has_a_target_though_its_list_still_says_where_it_was_first(self):
        ours = self.program("job/deps/bin")
        self.program("bin", "another")  # where the list of files points
        self.assertEqual(self.found(self.package("job/deps", ours, "../../bin/cuwhy")), ours)

    def test_another_program_at_the_place_of_the_list_is_not_the_one(self):
        ours = self.program("elsewhere")
        self.program("bin", "another")
        self.assertIn("found neither", self.found(self.package("job/deps", ours, "../../bin/cuwhy")))

    def test_no_place_is_computed_upwards(self):
        self.folder("tmp", 0o1777)
        self.program("tmp/bin", "another")
        self.package("tmp/alice/job/deps")
        self.assertIn("found neither", self.found(os.path.join(self.root, "tmp/alice/job/deps")))
        ours = self.program("tmp/alice/job/deps/bin")
        self.assertEqual(self.found(os.path.join(self.root, "tmp/alice/job/deps")), ours)

    def test_a_program_that_others_can_replace_is_not_used(self):
        site = self.package("site")
        for folder, mode in (("open", 0o777), ("group", 0o775)):
            path = self.program(os.path.join(folder, "bin"))
            os.chmod(os.path.join(self.root, folder), mode)
            if folder == "group":
                if os.geteuid() != 0:
                    continue
                os.chown(os.path.join(self.root, folder), 0, STRANGER)
            said = self.found(site, PATH=os.path.dirname(path))
            self.assertTrue(said.startswith("refused: the program '" + path), said)

    def test_unless_they_can_replace_the_package_as_well(self):
        site = self.package("shared/site")
        path = self.program("shared/bin")
        os.chmod(os.path.join(self.root, "shared"), 0o777)
        self.assertEqual(self.found(site, PATH=os.path.dirname(path)), path)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
    def test_nor_is_another_users_file_or_link(self):
        site = self.package("site")
        temporary = self.folder("tmp", 0o1777)
        path = self.program("tmp")
        self.assertEqual(self.found(site, PATH=temporary), path)
        os.chown(path, STRANGER, STRANGER)
        self.assertIn("refused", self.found(site, PATH=temporary))
        os.unlink(path)
        os.symlink(self.program("mine"), path)
        self.assertEqual(self.found(site, PATH=temporary), os.path.join(self.root, "mine/cuwhy"))
        os.lchown(path, STRANGER, STRANGER)
        self.assertIn("refused", self.found(site, PATH=temporary))

    def test_the_working_directory_is_not_searched(self):
        site, here = self.package("site"), os.path.dirname(self.program("work", "another"))
        for path in (".", "", ":/nowhere", "/nowhere::", "./", "../work"):
            self.assertIn("found neither", self.found(site, PATH=path, cwd=here), path)

    def test_an_archive_uses_what_path_has(self):
        archive = os.path.join(self.root, "app.pyz")
        with zipfile.ZipFile(archive, "w") as made:
            for name in os.listdir(os.path.join(PACKAGE, "cuwhy")):
                if name.endswith(".py"):
                    made.write(os.path.join(PACKAGE, "cuwhy", name), "cuwhy/" + name)
        path = self.program("programs")
        self.assertEqual(self.found(archive, PATH=os.path.dirname(path)), path)

    def test_a_checkout_uses_what_it_built(self):
        self.package("checkout/python")
        path = self.program("checkout/build")
        os.makedirs(os.path.join(self.root, "checkout/tools"))
        self.assertIn("found neither", self.found(os.path.join(self.root, "checkout/python")))
        open(os.path.join(self.root, "checkout/tools/wheel.py"), "w").close()
        self.assertEqual(self.found(os.path.join(self.root, "checkout/python")), path)


if __name__ == "__main__":
    unittest.main()
