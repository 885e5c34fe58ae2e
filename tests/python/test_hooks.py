# SPDX-License-Identifier: Apache-2.0
"""enable, watch and the excepthook: the verdict comes after the traceback, and nothing else changes."""

import os
import tempfile
import unittest

from helpers import ILLEGAL, OOM, PROGRAM, python

PLAIN = f"""
    class AcceleratorError(RuntimeError):
        pass
    def step():
        raise AcceleratorError({ILLEGAL!r})
"""


class Uncaught(unittest.TestCase):
    def test_appended(self):
        bare = python(PLAIN + "\n    step()")
        got = python(PLAIN + "\n    import cuwhy; cuwhy.enable()\n    step()")
        before, _, after = got.stderr.partition("\ncuwhy: ")
        self.assertEqual(got.returncode, bare.returncode)
        self.assertIn("AcceleratorError: " + ILLEGAL, before)
        self.assertEqual(before.count("Traceback"), 1)
        self.assertIn("(CUDA error 700)", after)
        self.assertIn("NOTE   this process was not started under `cuwhy run`", after)
        self.assertIn("DOCTOR", after)
        self.assertEqual(got.stdout, "")

    def test_other_errors_are_left_alone(self):
        for error in ("KeyError('x.cuda()')", "SystemExit(3)", "KeyboardInterrupt('CUDA error')"):
            code = f"{{}}\n    raise {error}"
            bare = python("if True:\n    " + code.format("pass"))
            got = python("if True:\n    " + code.format("import cuwhy; cuwhy.enable()"))
            self.assertEqual((got.returncode, got.stderr), (bare.returncode, bare.stderr), error)

    def test_the_hook_before_is_called(self):
        got = python(PLAIN + """
    import sys, cuwhy
    sys.excepthook = lambda *args: print("mine", args[0].__name__)
    cuwhy.enable()
    cuwhy.enable()
    step()""")
        self.assertEqual(got.stdout, "mine AcceleratorError\n")
        self.assertEqual(got.stderr.count("cuwhy: "), 1)

    def test_disable(self):
        got = python(PLAIN + "\n    import sys, cuwhy\n    a = sys.excepthook; cuwhy.enable(); cuwhy.disable()\n"
                     "    assert sys.excepthook is a\n    step()")
        self.assertNotIn("cuwhy: ", got.stderr)
        self.assertIn(ILLEGAL, got.stderr)

    def test_disable_under_another_hook(self):
        got = python(PLAIN + """
    import sys, cuwhy
    cuwhy.enable()
    ours = sys.excepthook
    sys.excepthook = lambda *args: ours(*args)
    cuwhy.disable()
    step()""")
        self.assertNotIn("cuwhy: ", got.stderr)
        self.assertIn(ILLEGAL, got.stderr)

    def test_thread(self):
        got = python(PLAIN + """
    import threading, cuwhy
    cuwhy.enable()
    t = threading.Thread(target=step)
    t.start()
    t.join()""")
        self.assertEqual(got.returncode, 0)
        self.assertLess(got.stderr.index("Exception in thread"), got.stderr.index("\ncuwhy: "))

    def test_without_the_program_nothing_changes(self):
        bare = python(PLAIN + "\n    import cuwhy\n    step()")
        got = python(PLAIN + "\n    import cuwhy; cuwhy.enable()\n    step()", CUWHY_PROGRAM="/nowhere/cuwhy")
        self.assertEqual(got.returncode, bare.returncode)
        self.assertNotIn("nowhere", got.stderr)
        self.assertNotIn("CuwhyError", got.stderr)

    def test_a_program_that_hangs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cuwhy")
            with open(path, "w", encoding="ascii") as f:
                f.write("#!/bin/sh\nexec sleep 600\n")
            os.chmod(path, 0o755)
            got = python(PLAIN + "\n    import cuwhy; cuwhy.enable(timeout=0.3)\n    step()", CUWHY_PROGRAM=path)
        self.assertEqual(got.returncode, 1)
        self.assertTrue(got.stderr.rstrip().endswith(ILLEGAL))

    def test_standard_error_closed(self):
        got = python(PLAIN + "\n    import sys, cuwhy; cuwhy.enable()\n    sys.stderr = None\n    step()")
        self.assertEqual(got.returncode, 1)


class UnderRun(unittest.TestCase):
    def test_nothing_is_added(self):
        code = PLAIN + """
    import cuwhy
    print(cuwhy.under_run(), cuwhy.enable())
    try:
        with cuwhy.watch() as w:
            step()
    except AcceleratorError:
        print(w.verdict)"""
        with tempfile.TemporaryDirectory() as folder:
            got = python(code, PROGRAM, "run", "--gpu", "sim:h200", CUWHY_DIR=folder)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "True False\nNone\n", ""))

    def test_not_by_the_environment_alone(self):
        self.assertEqual(python("import cuwhy; print(cuwhy.under_run())", CUWHY_SOCK="/nowhere").stdout, "False\n")


class Watch(unittest.TestCase):
    def test_the_error_goes_on(self):
        got = python(PLAIN + """
    import cuwhy
    try:
        with cuwhy.watch() as w:
            step()
    except AcceleratorError as e:
        print(w.verdict.cause, w.verdict.error.code, str(e))""")
        self.assertEqual(got.stdout, f"illegal-access-out-of-bounds 700 {ILLEGAL}\n")
        self.assertEqual(got.stderr.count("cuwhy: "), 1)

    def test_told_once(self):
        got = python(PLAIN + "\n    import cuwhy\n    cuwhy.enable()\n    with cuwhy.watch(), cuwhy.watch():\n        step()")
        self.assertEqual(got.stderr.count("(CUDA error 700)"), 1)

    def test_quiet(self):
        got = python(PLAIN + """
    import cuwhy
    try:
        with cuwhy.watch(quiet=True) as w:
            step()
    except AcceleratorError:
        print(w.verdict.sticky)""")
        self.assertEqual((got.stdout, got.stderr), ("True\n", ""))

    def test_no_error(self):
        got = python("import cuwhy\nwith cuwhy.watch() as w:\n    pass\nprint(w.verdict)")
        self.assertEqual((got.stdout, got.stderr), ("None\n", ""))


class Torch(unittest.TestCase):
    CODE = f"""
    import torch, cuwhy
    try:
        with cuwhy.watch(memory_history=HISTORY) as w:
            raise torch.OutOfMemoryError({OOM!r})
    except torch.OutOfMemoryError:
        v = w.verdict
        print(v.error.code, v.collected["torch"], v.collected["devices"], (v.collected["snapshot"] or {{}}).get("cause"))
        print(torch.cuda.memory.history)"""

    def test_statistics_and_snapshot(self):
        got = python(self.CODE.replace("HISTORY", "False"))
        self.assertIn("'version': '2.99.0+cu130'", got.stdout)
        self.assertIn("'device': 0, 'allocated': 15032385536", got.stdout)
        self.assertNotIn("'device': 1", got.stdout)
        self.assertRegex(got.stdout, r"oom-[a-z-]+\n\[\]\n")
        self.assertIn("HERE   PyTorch on device 0: 14.0 GiB in tensors (at most 15.0 GiB), 22.0 GiB reserved", got.stderr)

    def test_history_only_when_asked_and_off_again(self):
        got = python(self.CODE.replace("HISTORY", "True"))
        self.assertIn("[{'max_entries': 100000}, {'enabled': None}]", got.stdout)

    def test_cuda_not_used_yet(self):
        got = python(self.CODE.replace("HISTORY", "False"), FAKE_TORCH="idle")
        self.assertIn("'initialized': False} [] None", got.stdout)

    def test_a_torch_that_fails(self):
        got = python(self.CODE.replace("HISTORY", "False"), FAKE_TORCH="broken")
        self.assertIn("2 {", got.stdout)

    def test_torch_is_not_imported(self):
        got = python(PLAIN + "\n    import sys, cuwhy\n    cuwhy.explain(AcceleratorError('CUDA error: x'), collect=True)\n"
                     "    print('torch' in sys.modules)")
        self.assertEqual(got.stdout, "False\n")


class Notebook(unittest.TestCase):
    def test_after_the_cell(self):
        got = python(f"""
    import sys, types
    class Events:
        def register(self, name, f): print("on", name); self.f = f
        def unregister(self, name, f): print("off", name)
    shell = types.SimpleNamespace(events=Events())
    sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
    import cuwhy
    cuwhy.enable()
    shell.events.f(types.SimpleNamespace(error_in_exec=RuntimeError({ILLEGAL!r})))
    shell.events.f(types.SimpleNamespace(error_in_exec=None))
    cuwhy.disable()""")
        self.assertEqual(got.stdout, "on post_run_cell\noff post_run_cell\n")
        self.assertEqual(got.stderr.count("(CUDA error 700)"), 1)


if __name__ == "__main__":
    unittest.main()
