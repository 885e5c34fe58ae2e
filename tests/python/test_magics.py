# SPDX-License-Identifier: Apache-2.0
"""%load_ext cuwhy, outside of `cuwhy run`; tests/frameworks has more, with PyTorch itself."""

import importlib.util
import tempfile
import unittest

from helpers import ILLEGAL, python

CELLS = """
    import torch
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance(colors="nocolor")
    for cell in CELLS:
        result = shell.run_cell(cell)
        print("--", result.success, type(result.error_in_exec).__name__, flush=True)"""
FAILS = f"%%cuwhy\nraise RuntimeError({ILLEGAL!r})"


@unittest.skipUnless(importlib.util.find_spec("IPython"), "there is no IPython")
class Magics(unittest.TestCase):
    def cells(self, *cells):
        with tempfile.TemporaryDirectory() as folder:
            got = python(CELLS.replace("CELLS", repr(["%load_ext cuwhy", *cells])), IPYTHONDIR=folder, HOME=folder)
        self.assertEqual(got.returncode, 0, got.stderr)
        return got

    def test_the_verdict_once_and_the_cell_has_failed(self):
        for before in ("1", "import cuwhy; cuwhy.enable()"):
            got = self.cells(before, FAILS)
            self.assertEqual(got.stderr.count("(CUDA error 700)"), 1, got.stderr)
            self.assertEqual(got.stdout.count("Traceback (most recent call last)"), 1, got.stdout)
            self.assertTrue(got.stdout.endswith("-- False CellFailed\n"), got.stdout)

    def test_the_last_error(self):
        got = self.cells(FAILS, "_ = %cuwhy\nprint(_.error.code)")
        self.assertTrue(got.stdout.endswith("700\n-- True NoneType\n"), got.stdout)

    def test_a_cell_without_error(self):
        got = self.cells("%%cuwhy\nx = 3\nx * 7", "print(x)")
        self.assertIn("21", got.stdout)
        self.assertTrue(got.stdout.endswith("3\n-- True NoneType\n"), got.stdout)
        self.assertEqual(got.stderr, "")

    def test_memory(self):
        got = self.cells("%%memory\nx = 1", "%memory")
        self.assertIn("GPU 0: the cell needed 1.0 GiB, and keeps 0 bytes", got.stdout)
        self.assertIn("GPU 0: 14.0 GiB in tensors, at most 15.0 GiB", got.stdout)


if __name__ == "__main__":
    unittest.main()
