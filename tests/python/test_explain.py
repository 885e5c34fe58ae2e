# SPDX-License-Identifier: Apache-2.0
"""cuwhy.explain: exceptions and texts to verdicts."""

import os
import pathlib
import stat
import tempfile
import unittest
from unittest import mock

import cuwhy
from cuwhy._verdict import verdict_from_json
from helpers import ILLEGAL, OOM


class AcceleratorError(RuntimeError):
    pass


def raised(exc, cause=None):
    try:
        raise exc from cause
    except Exception as e:
        return e


class Unspeakable(RuntimeError):
    def __str__(self):
        raise ValueError("no text")


class Explain(unittest.TestCase):
    def test_exception(self):
        v = cuwhy.explain(raised(AcceleratorError(ILLEGAL)))
        self.assertEqual(v.cause, "illegal-access-out-of-bounds")
        self.assertEqual(v.certainty, "possible")
        self.assertEqual((v.error.code, v.error.name), (700, "CUDA_ERROR_ILLEGAL_ADDRESS"))
        self.assertTrue(v.found and v.sticky)
        self.assertEqual(os.path.basename(v.where.file), "test_explain.py")
        self.assertEqual(v.where.function, "raised")
        self.assertEqual(v.candidates[0].cause, v.cause)
        self.assertTrue(v.fix[0].text and v.evidence[0].text)
        self.assertEqual(v.unknown, cuwhy.LIMITS)
        self.assertTrue(str(v).startswith("cuwhy: "))
        self.assertIn("CONFIDENCE  possible", str(v))
        self.assertNotIn("standard input", str(v))

    def test_text(self):
        v = cuwhy.explain(f"torch.OutOfMemoryError: {OOM}")
        self.assertTrue(v.cause.startswith("oom-"), v.cause)
        self.assertFalse(v.sticky)
        self.assertEqual(v.error.code, 2)

    def test_codes(self):
        for what in (700, "700", "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress"):
            v = cuwhy.explain(what)
            self.assertEqual((v.error.code, v.cause, v.certainty), (700, "illegal-access-out-of-bounds", "possible"), what)
            self.assertTrue(v.sticky and v.found and "700" in str(v), what)
        self.assertFalse(cuwhy.explain(2).sticky)
        with self.assertRaises(cuwhy.CuwhyError):
            cuwhy.explain(123456)

    def test_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train 1.log")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"step 1\ntorch.OutOfMemoryError: {OOM}\n")
            for what in (path, pathlib.Path(path)):
                self.assertEqual(cuwhy.explain(what).error.code, 2)
            for what in (os.path.join(folder, "none"), "no-such-file.log", pathlib.Path(folder, "none")):
                with self.assertRaises(cuwhy.CuwhyError) as caught:
                    cuwhy.explain(what)
                self.assertIn("there is no file", str(caught.exception))

    def test_other_types_are_refused(self):
        for what in (b"CUDA error", 7.5, True, [], RuntimeError):
            with self.assertRaises(TypeError):
                cuwhy.explain(what)

    def test_nothing_of_cuda(self):
        v = cuwhy.explain(raised(KeyError("x")))
        self.assertEqual(v.cause, "none")
        self.assertFalse(v.found)

    def test_the_cause_of_another_exception(self):
        v = cuwhy.explain(raised(ValueError("training failed"), raised(AcceleratorError(ILLEGAL))))
        self.assertEqual(v.error.code, 700)

    def test_the_exception_at_hand(self):
        try:
            raise AcceleratorError(ILLEGAL)
        except AcceleratorError:
            self.assertEqual(cuwhy.explain().error.code, 700)

    def test_none_at_hand(self):
        with mock.patch.multiple("sys", last_value=None, last_exc=None, create=True), self.assertRaises(cuwhy.CuwhyError):
            cuwhy.explain()

    def test_markup_is_text(self):
        v = cuwhy.explain(raised(AcceleratorError(ILLEGAL + " </pre><script>")))
        self.assertNotIn("<script>", v._repr_html_())

    def test_text_of_any_characters(self):
        v = cuwhy.explain(raised(AcceleratorError(ILLEGAL + " \udcff \x00 \u20ac")))
        self.assertEqual(v.error.code, 700)

    def test_long_text(self):
        v = cuwhy.explain(raised(AcceleratorError("x" * 3000000 + "\n" + ILLEGAL)), timeout=300)
        self.assertTrue(v.found)

    def test_no_program(self):
        with mock.patch.dict(os.environ, CUWHY_PROGRAM="/nowhere/cuwhy"), self.assertRaises(cuwhy.CuwhyError):
            cuwhy.explain("CUDA error: out of memory")

    def test_a_program_that_hangs_or_talks_nonsense(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cuwhy")
            for body, said, timeout in (("exec sleep 600", "in time", 0.5), ("echo nonsense", "gave no answer", 60), ("echo []", "object", 60),
                                        ("echo '{\"failure\": {\"message\": \"it broke\"}}'", "it broke", 60)):
                with open(path, "w", encoding="ascii") as f:
                    f.write(f"#!/bin/sh\n{body}\n")
                os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
                with mock.patch.dict(os.environ, CUWHY_PROGRAM=path), self.assertRaises(cuwhy.CuwhyError) as caught:
                    cuwhy.explain("CUDA error: out of memory", timeout=timeout)
                self.assertIn(said, str(caught.exception))

    def test_version(self):
        self.assertEqual(cuwhy.__version__, cuwhy.version()["version"])
        self.assertEqual(cuwhy.version()["schema"], 1)


class IsCudaError(unittest.TestCase):
    def test_by_message_and_type(self):
        self.assertTrue(cuwhy.is_cuda_error(RuntimeError(ILLEGAL)))
        self.assertTrue(cuwhy.is_cuda_error(RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")))
        self.assertTrue(cuwhy.is_cuda_error(type("CUDADriverError", (RuntimeError,), {})("no words")))
        self.assertFalse(cuwhy.is_cuda_error(KeyError("weights")))

    def test_chains_that_never_end(self):
        a, b = RuntimeError("a"), RuntimeError("b")
        a.__context__, b.__context__ = b, a
        self.assertFalse(cuwhy.is_cuda_error(a))

    def test_an_exception_without_text(self):
        self.assertFalse(cuwhy.is_cuda_error(Unspeakable()))


class FromJson(unittest.TestCase):
    def test_everything(self):
        v = verdict_from_json({
            "cause": "c", "certainty": "certain", "title": "t", "error": {"code": 700, "name": "N", "api": "cuX", "sticky": True},
            "where": {"file": "a.py", "line": 3, "function": "f", "stack": [{"file": "a.py", "line": 3, "function": "f"}]},
            "noticed": {"file": "a.py", "line": 9}, "memory": {"total": 1},
            "kernel": {"name": "k", "grid": [1, 2, 3], "block": [4, 1, 1], "shared": 0, "stream": 7},
            "fault": {"block": [0, 0, 0], "thread": [64, 0, 0], "address": "0x1", "access": "write", "bytes": 4, "pc": "k+0xe0"},
            "candidates": [{"cause": "c", "certainty": "certain"}], "evidence": [{"source": "s", "text": "e"}],
            "fix": [{"text": "x", "command": None}]}, "the text")
        self.assertEqual(v.kernel.grid, (1, 2, 3))
        self.assertEqual((v.fault.thread, v.fault.access, v.fault.bytes), ((64, 0, 0), "write", 4))
        self.assertEqual((v.where.line, v.where.stack[0].function, v.noticed.line), (3, "f", 9))
        self.assertEqual((v.memory, v.fix[0].command, str(v)), ({"total": 1}, None, "the text"))

    def test_other_types_than_promised(self):
        for value in (None, 1, "x", [], [1], {}, {"code": "x", "file": 3, "grid": 3, "stack": 1}):
            keys = ("error", "where", "noticed", "kernel", "fault", "memory", "candidates", "evidence", "fix", "cause")
            v = verdict_from_json({k: value for k in keys})
            self.assertEqual(v.certainty, "possible")


if __name__ == "__main__":
    unittest.main()
