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

    def test_enable_says_nothing(self):
        """As the last line of a cell, a value would be printed."""
        got = python("import cuwhy; print(cuwhy.enable(), cuwhy.enable(timeout=5), cuwhy.disable())")
        self.assertEqual((got.stdout, got.stderr), ("None None None\n", ""))

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
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "True None\nNone\n", ""))

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

    def test_a_history_before_cuda_was_used(self):
        got = python(self.CODE.replace("HISTORY", "True"), FAKE_TORCH="idle")
        self.assertEqual(got.returncode, 0, got.stderr)
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


class History(unittest.TestCase):
    """An out-of-memory error with PyTorch's history on: the snapshot of that moment is what counts."""

    FULL = ("CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.00 GiB is free. "
            "Including non-PyTorch memory, this process has 22.50 GiB memory in use. Of the allocated memory 22.00 GiB is "
            "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.")
    CODE = f"""
    import torch, cuwhy
    try:
        with cuwhy.watch(memory_history=HISTORY) as w:
            torch.run_out({FULL!r})
    except torch.OutOfMemoryError:
        v = w.verdict
        print(v.cause, v.certainty, v.error.code, v.where and v.where.line)
        print(v.collected["history"], v.collected["oom"], [(h["line"], h["blocks"]) for h in v.collected["lines"]])
        print(v.memory and v.memory["total"], [c.cause for c in v.candidates])"""

    def run_story(self, story, history=True, **more):
        return python(self.CODE.replace("HISTORY", str(history)), FAKE_STORY=story, **more)

    def test_growth(self):
        got = self.run_story("list")
        lines = got.stdout.splitlines()
        self.assertEqual(lines[0], "oom-growth likely 2 40", got.stderr)
        self.assertEqual(lines[1], "True {'device': 0, 'request': 4294967296, 'total': 25769803776, 'free': 1073741824} "
                         "[(40, 35), (39, 1)]")
        self.assertIn(f"{int(23.65 * (1 << 30))} ['oom-growth', 'oom-other-process'", lines[2])     # a third may follow
        self.assertIn("HELD   15.6 GiB in 35 blocks allocated at /home/user/train.py:40", got.stderr)
        self.assertIn("device 0 has 24.0 GiB, of which 1.0 GiB was free when 4.0 GiB was requested", got.stderr)

    def test_other_causes(self):
        for story, want in (("fragmentation", "oom-fragmentation likely"), ("fill", "oom-capacity likely")):
            self.assertEqual(" ".join(self.run_story(story).stdout.split()[:2]), want)

    def test_without_it_nothing_is_certain(self):
        got = self.run_story("list", False)
        self.assertEqual(got.stdout.splitlines()[0][:19], "oom-capacity likely")
        self.assertIn("oom-growth", got.stdout.splitlines()[2])
        self.assertIn("False None []", got.stdout)

    def test_a_snapshot_that_cannot_be_had(self):
        self.assertEqual(self.run_story("list", FAKE_TORCH="no snapshot").stdout.splitlines()[0][:19], "oom-capacity likely")

    def test_the_file_is_private_and_has_no_name(self):
        """A program that dies meanwhile leaves nothing behind."""
        with tempfile.TemporaryDirectory() as folder:
            path, seen, temporary = (os.path.join(folder, name) for name in ("cuwhy", "seen", "tmp"))
            os.mkdir(temporary)
            with open(path, "w", encoding="ascii") as f:
                f.write(f'#!/bin/sh\nfor i; do case $i in /proc/*) stat -Lc %a "$i" >>{seen}; ls -A {temporary} >>{seen};; esac; done\n'
                        f'exec {PROGRAM} "$@"\n')
            os.chmod(path, 0o755)
            got = self.run_story("list", CUWHY_PROGRAM=path, TMPDIR=temporary)
            with open(seen, encoding="ascii") as f:
                self.assertEqual(set(f.read().split()), {"600"}, got.stderr)

    def test_an_error_that_was_handled_is_not_the_next_one(self):
        got = python(f"""
    import torch, cuwhy
    try:
        with cuwhy.watch(memory_history=True) as w:
            try:
                torch.run_out({self.FULL!r})
            except torch.OutOfMemoryError:
                pass
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    except RuntimeError:
        print(w.verdict.collected["oom"], w.verdict.collected["lines"])""", FAKE_STORY="list")
        self.assertEqual(got.stdout, "None []\n")

    def test_asked_once_and_the_program_s_own_stays(self):
        got = python("""
    import torch, cuwhy
    with cuwhy.watch(memory_history=True), cuwhy.watch(memory_history=True):
        pass
    cuwhy.enable(memory_history=True)
    cuwhy.enable(memory_history=True)
    cuwhy.disable()
    print(len(torch._C.observers), torch.cuda.memory.history)
    torch._C.enabled = True
    with cuwhy.watch(memory_history=True):
        pass
    print(len(torch.cuda.memory.history))""")
        once = "{'max_entries': 100000}, {'enabled': None}"
        self.assertEqual(got.stdout, f"1 [{once}, {once}]\n4\n")

    def test_enable(self):
        got = python(f"import torch, cuwhy\ncuwhy.enable(memory_history=True)\ntorch.run_out({self.FULL!r})", FAKE_STORY="list")
        self.assertIn("HELD   15.6 GiB in 35 blocks allocated at /home/user/train.py:40", got.stderr)
        self.assertEqual(got.returncode, 1)


class Notebook(unittest.TestCase):
    def test_after_the_cell(self):
        got = python(f"""
    import sys, types
    class Events:
        def register(self, name, f): print("on", name); self.f = f if name == "post_run_cell" else self.f
        def unregister(self, name, f): print("off", name)
    shell = types.SimpleNamespace(events=Events())
    sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
    import cuwhy
    cuwhy.enable()
    shell.events.f(types.SimpleNamespace(error_in_exec=RuntimeError({ILLEGAL!r})))
    shell.events.f(types.SimpleNamespace(error_in_exec=None))
    cuwhy.disable()""")
        self.assertEqual(got.stdout, "on post_run_cell\non pre_run_cell\noff post_run_cell\noff pre_run_cell\n")
        self.assertEqual(got.stderr.count("(CUDA error 700)"), 1)


if __name__ == "__main__":
    unittest.main()
