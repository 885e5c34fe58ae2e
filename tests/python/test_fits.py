# SPDX-License-Identifier: Apache-2.0
"""cuwhy.fits: the batch that would have fit, and whether a retry helps."""

import os
import re
import unittest
from unittest import mock

import cuwhy
from cuwhy import _explain, _fits
from helpers import FAKES, ILLEGAL, OOM, PACKAGE, ROOT, python

SMALL = os.path.join(FAKES, "small_card")

PROGRAM = """
    import cuwhy, torch
    layer = torch.nn.TransformerEncoderLayer(512)
    model = torch.nn.TransformerEncoder(layer, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1)
    def step(batch):
        optimizer.zero_grad()
        model(torch.randn(batch, 512, 512)).square().mean().backward()
        optimizer.step()
    def truth():
        batch = 1
        while True:
            try:
                step(batch + 1)
            except torch.OutOfMemoryError:
                return batch
            batch += 1
"""


def small_card(code, room=1024):
    return python(code, PYTHONPATH=os.pathsep.join([PACKAGE, SMALL]), FAKE_ROOM=str(room))


def example(name, room):
    with open(os.path.join(ROOT, "docs", "examples", name), encoding="ascii") as stream:
        return small_card(stream.read(), room)


class Raises(RuntimeError):
    def __str__(self):
        raise ValueError("no text")


class Fits(unittest.TestCase):
    def test_what_is_no_such_error(self):
        for exc in (KeyError("x"), RuntimeError(ILLEGAL), RuntimeError("CUDA error: out of memory"), Raises(), None, 3, "text"):
            self.assertIsNone(cuwhy.fits(exc, batch=8), exc)

    def test_without_pytorch_it_cannot_be_told(self):
        self.assertIsNone(cuwhy.fits(RuntimeError(OOM), batch=8))

    def test_any_batch_is_harmless(self):
        for batch in (0, -1, "x", None, 10 ** 30):
            self.assertIsNone(cuwhy.fits(RuntimeError(OOM), batch=batch))

    def test_a_batch_of_one_that_failed_leaves_none(self):
        found = cuwhy.fits(RuntimeError(OOM), batch=1)
        self.assertEqual((found, found.exact), (0, True))

    def test_fits_and_retry_never_disagree(self):
        oom = RuntimeError(OOM)
        causes = [*_explain._RETRY, "unknown"]
        for cause in causes:
            for certainty in ("certain", "likely", "possible"):
                for estimate in (None, _fits.Fits(0, False, ""), _fits.Fits(7, False, "")):
                    judged = cuwhy.Verdict(cause, certainty, "", error=cuwhy.Error(2, None, None))
                    with mock.patch.object(_explain, "_judge_exception", return_value=judged), \
                            mock.patch.object(_fits, "batch_for", return_value=estimate):
                        found, verdict = cuwhy.fits(oom, batch=8), cuwhy.explain(oom, batch=8)
                    self.assertEqual(found, verdict.fits)
                    if found is not None:
                        self.assertEqual(found > 0, verdict.retry, (cause, certainty, estimate))
                    else:
                        self.assertIsNot(verdict.retry, False)

    def test_memory_that_grows_leaves_no_batch(self):
        judged = cuwhy.Verdict("oom-growth", "likely", "", error=cuwhy.Error(2, None, None))
        with mock.patch.object(_explain, "_judge_exception", return_value=judged):
            found = cuwhy.fits(RuntimeError(OOM), batch=8)
        self.assertEqual((found, found.exact), (0, False))
        self.assertIn("oom-growth", found.because)

    def test_the_request_is_read_from_the_message(self):
        self.assertEqual(_fits.request_of(OOM) >> 30, 20)
        self.assertIsNone(_fits.request_of("CUDA out of memory. Tried to allocate nothing"))

    def test_a_message_may_have_the_segment_instead_of_the_request(self):
        for asked, said, same in ((79 << 20, 80 << 20, True), (79 << 20, 79 << 20, True), (3 << 20, 20 << 20, True), (512, 2 << 20, True),
                                  (79 << 20, 84 << 20, False), (3 << 20, 2 << 20, False)):
            self.assertIs(_fits.same_request(asked, said), same, (asked, said))

    def test_it_is_what_the_recording_says(self):
        """The number where it is about this batch, else a part of it; nothing that was not played back."""
        known, part = {"batch": 64, "size": 37, "millionths": 578125}, {"batch": None, "size": None, "millionths": 972850}
        for fits, batch, want in ((known, 64, 37), (known, 32, 18), (part, 5000, 4864), ({"batch": 64, "size": 0, "millionths": 0}, 64, 0),
                                  ({"batch": 64, "size": None, "millionths": None}, 64, None), (None, 64, None)):
            judged = cuwhy.Verdict("oom-capacity", "likely", "", error=cuwhy.Error(2, None, None), memory={"fits": fits})
            with mock.patch.object(_explain, "_judge_exception", return_value=judged):
                found = cuwhy.fits(RuntimeError(OOM), batch=batch)
            self.assertEqual(found, want, (fits, batch))
            self.assertTrue(found is None or not found.exact and "played back" in found.because)

    def test_without_a_recording_it_is_not_known(self):
        got = small_card(PROGRAM + """
    try:
        step(4000)
    except torch.OutOfMemoryError as e:
        print(cuwhy.fits(e, batch=4000))""")
        self.assertEqual((got.stdout, got.stderr), ("None\n", ""))

    def test_nothing_of_the_failed_step_stays_alive(self):
        """The frame that handles the exception still runs: a look at its names would keep the exception, and all of its tensors."""
        got = small_card(PROGRAM + """
    def handles(batch):
        try:
            step(batch)
        except torch.OutOfMemoryError as e:
            assert cuwhy.fits(e, batch=batch) is None
            assert cuwhy.explain(e, batch=batch).found
        return torch.live["bytes"] >> 20
    print(torch.live["bytes"] >> 20, handles(150))""")
        self.assertEqual(got.stdout, "8 8\n", got.stderr)

    def test_a_trial_is_exact(self):
        got = small_card(PROGRAM + """
    want = truth()
    try:
        step(3 * want)
    except torch.OutOfMemoryError as e:
        found = cuwhy.fits(e, batch=3 * want, step=step)
    print(found == want, found.exact, found.because)""")
        self.assertTrue(got.stdout.startswith("True True two steps with "), got.stdout + got.stderr)

    def test_a_trial_that_raises_something_else_is_silent(self):
        got = small_card(PROGRAM + """
    def bad(batch):
        raise KeyError(batch)
    try:
        step(4000)
    except torch.OutOfMemoryError as e:
        print(cuwhy.fits(e, batch=4000, step=bad))""")
        self.assertEqual((got.stdout, got.stderr), ("None\n", ""))


class Retry(unittest.TestCase):
    def test_by_cause(self):
        for cause, fits, want in (("oom-capacity", None, True), ("oom-capacity", 8, True), ("oom-capacity", 0, False),
                                  ("oom-growth", 8, False), ("oom-graph-retention", None, False), ("oom-other-process", None, None),
                                  ("oom-other-process", 0, False), ("oom-other-process", 4, True), ("unheard-of", None, None)):
            verdict = cuwhy.Verdict(cause, "likely", "", fits=fits, error=cuwhy.Error(2, None, None))
            self.assertIs(cuwhy._explain._retry(verdict), want, (cause, fits))

    def test_after_a_sticky_error_nothing_helps(self):
        self.assertIs(cuwhy.explain(RuntimeError(ILLEGAL)).retry, False)

    def test_of_an_exception(self):
        verdict = cuwhy.explain(RuntimeError(OOM), batch=1)
        self.assertEqual((verdict.fits, verdict.retry), (0, False))
        self.assertIsNone(cuwhy.explain(RuntimeError(OOM)).fits)
        self.assertIsNone(cuwhy.explain(KeyError("x"), batch=4).retry)


class Examples(unittest.TestCase):
    def test_retry_batch(self):
        got = example("retry_batch.py", 4096)
        self.assertEqual((got.returncode, got.stderr), (0, ""), got.stderr)
        self.assertTrue(re.search(r"trained with a batch of \d+\n$", got.stdout), got.stdout)

    def test_fall_back_to_cpu(self):
        got = example("fall_back_to_cpu.py", 64)
        self.assertEqual((got.returncode, got.stderr), (0, ""), got.stderr)
        self.assertIn("a retry helps: False\n", got.stdout)
        self.assertIn("by the CPU\n", got.stdout)


if __name__ == "__main__":
    unittest.main()
