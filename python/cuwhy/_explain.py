# SPDX-License-Identifier: Apache-2.0
"""From an exception or a text to a verdict."""

from __future__ import annotations

import os
import re
import sys
import traceback
from dataclasses import replace
from typing import Any, Callable, Optional, Union

from . import _collect, _fits, _live
from ._exceptions import OF_TORCH, chain, message, oom_of
from ._program import CuwhyError, Deadline, ask, ask_json, under_run
from ._verdict import Verdict, verdict_from_json

TIMEOUT = 10.0
_HEAD, _TAIL = 1 << 18, 3 << 18  # the parts that are kept of a longer text

# meaningless for an exception: the user has never seen that input
_LINE_OF_INPUT = re.compile(r"^ +the error is on line \d+ of standard input\n", re.MULTILINE)

# An exception without any of these in its name or message is not CUDA's. cuwhy decides about the others.
_WORDS = ("cuda", "cublas", "cudnn", "cusolver", "cusparse", "cufft", "nvrtc", "nvml", "nvidia", "nccl", "triton", "cupy",
          "device-side assert")


def is_cuda_error(exc: BaseException) -> bool:
    """May this be a CUDA failure, judging by its type and message? Quick; `explain` knows for sure."""
    return any(word in message(e).lower() for e in chain(exc) for word in _WORDS)


def _traceback(exc: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))
    except Exception:
        text = message(exc)
    if len(text) > _HEAD + _TAIL:
        text = text[:_HEAD] + "\n" + text[-_TAIL:]
    return text


def _current() -> BaseException:
    exc: Optional[BaseException] = sys.exc_info()[1]
    if exc is None:
        exc = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if exc is None:
        raise CuwhyError("there is no exception to explain")
    return exc


def judge(text: str, deadline: Deadline) -> Verdict:
    """The verdict on a text."""
    answer = ask_json(["explain", "--json", "-q", "-"], text, deadline)
    report = ask(["explain", "-q", "--color", "never", "-"], text, deadline)[1]
    return verdict_from_json(answer, report)


# CUDA's codes, by number or name, and what the kernel log calls them
_CODE = re.compile(r"\s*(\d{1,6}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|cuda(?:Error|Success)\w*|[Xx][Ii][Dd] ?\d+)\s*")
_NAME_MAX = 4096  # longer texts are no paths


def _explain_named(name: str, deadline: Deadline) -> Verdict:
    """A file, a folder, or a code: what `cuwhy explain NAME` says."""
    answer = ask_json(["explain", "--json", name], "", deadline)
    report = ask(["explain", "--color", "never", name], "", deadline)[1]
    verdict = verdict_from_json(answer, report)
    code = answer.get("code")
    if verdict.error is not None and isinstance(code, dict) and code.get("sticky") is True:
        verdict = replace(verdict, error=replace(verdict.error, sticky=True))
    return verdict


def _explain_path(path: str, deadline: Deadline) -> Verdict:
    if not os.path.exists(path):
        raise CuwhyError(f"there is no file '{path}'")
    return _explain_named(os.path.abspath(path), deadline)


def _is_path(text: str) -> bool:
    """Something that is there, or has no blanks and a folder or a known ending. All else is the text itself."""
    if not text or len(text) > _NAME_MAX or "\n" in text or "\0" in text:
        return False
    return os.path.exists(text) or (not re.search(r"\s", text) and (
        os.sep in text or text.endswith((".log", ".txt", ".out", ".err", ".json", ".pickle", ".pkl", ".gz", ".zst", ".cwr", ".cudacore"))))


def _explain_text(text: str, deadline: Deadline) -> Verdict:
    if _is_path(text):
        return _explain_path(text, deadline)
    code = _CODE.fullmatch(text)
    return _explain_named(code.group(1), deadline) if code else judge(text, deadline)


# what a smaller batch does about it: True and False, or whatever the batch that fits says
_RETRY = {"oom-capacity": True, "oom-request-too-large": True, "oom-fragmentation": True, "oom-other-process": None,
          "oom-other-library": None, "oom-private-pool": None, "oom-memory-fraction": None, "oom-guard-mode": None, "oom-masked-as-library-error": None,
          # these only come later
          "oom-growth": False, "oom-graph-retention": False, "oom-eval-without-no-grad": False,
          # and these have nothing to do with it
          "oom-pinned-host": False, "oom-rank0-checkpoint-load": False}


def _helps(verdict: Verdict) -> Optional[bool]:
    """Does a smaller batch help? By the cause alone; a cause that is only possible says nothing."""
    if verdict.sticky or not verdict.found:
        return False if verdict.sticky else None
    return _RETRY.get(verdict.cause) if verdict.certainty != "possible" else None


def _fits_after(verdict: Verdict, oom: BaseException, batch: int, step: Optional[Callable[[int], Any]],
                timeout: float) -> Optional[_fits.Fits]:
    """The batch that fits; 0 where the cause leaves none, unless steps are run. `explain` and `fits` both ask here."""
    if step is None and _helps(verdict) is False:
        return _fits.Fits(0, False, f"{verdict.cause} ({verdict.certainty}): a smaller batch only fails later, or does not help at all")
    return _fits.batch_for(oom, verdict.memory, batch, step, timeout)


def _retry(verdict: Verdict) -> Optional[bool]:
    helps = _helps(verdict)
    return helps if helps is False or verdict.fits is None else verdict.fits > 0


def _recorded(exc: BaseException, deadline: Deadline) -> Optional[Verdict]:
    """The verdict of the recorder, if there is one and it is about this error: the first that ran out of memory."""
    oom = oom_of(exc)
    said = _fits.request_of(str(oom)) if oom is not None else None
    try:
        with _live.recording() as copy:
            if copy is None or said is None:
                return None
            answer = ask_json(["explain", "--json"], "", deadline, copy)
            told = ask(["explain", "--color", "never"], "", deadline, copy)[1]
            verdict = verdict_from_json(answer, told.replace(copy.path, "this process"))
        request = (verdict.memory or {}).get("request")
        return verdict if isinstance(request, int) and _fits.same_request(request, said) else None
    except Exception:
        return None


def _judge_exception(exc: BaseException, text: str, deadline: Deadline) -> Verdict:
    return _recorded(exc, deadline) or judge(text, deadline)


def _fits_or_none(verdict: Verdict, oom: BaseException, batch: int, step: Optional[Callable[[int], Any]],
                  timeout: float) -> Optional[_fits.Fits]:
    try:
        return _fits_after(verdict, oom, int(batch), step, timeout) if int(batch) >= 1 else None
    except Exception:
        return None


def fits(exc: Optional[BaseException] = None, *, batch: int, step: Optional[Callable[[int], Any]] = None,
         timeout: float = TIMEOUT) -> Optional[_fits.Fits]:
    """The largest batch that would have fit, after a step with `batch` ran out of GPU memory; None: it cannot be told.

    Under `cuwhy run`, what its verdict says: the recording played back, known where an earlier step had run. 0 where a smaller batch does not help,
    because memory grows from step to step. With `step`, a function that takes a batch size, the answer is found by running steps, at most
    `timeout` seconds long after the first. Never raises.
    """
    try:
        oom = oom_of(exc)
        if oom is None:
            return None
        deadline = Deadline(timeout)
        try:
            verdict = _judge_exception(oom, _traceback(oom), deadline)
        except Exception:  # without cuwhy itself, steps can still be run
            verdict = Verdict("unknown", "possible", "")
        return _fits_or_none(verdict, oom, batch, step, timeout)
    except Exception:
        return None


def explain(what: Union[BaseException, str, int, "os.PathLike[str]", None] = None, *, collect: bool = False, batch: Optional[int] = None,
            timeout: float = TIMEOUT) -> Verdict:
    """Why CUDA failed, from an exception, a text (a log, a traceback), the path of what `cuwhy explain` reads (a log, a recording, a
    core dump, a snapshot), or a code of CUDA's (700); by default from the current exception, or the last uncaught one.

    `collect` adds PyTorch's memory statistics, a snapshot of its memory if that ran out, and what the doctor finds on
    this machine. `batch`, the size of the batch that failed, adds the one that would have fit. Raises CuwhyError when cuwhy itself
    fails, when it needs more than `timeout` seconds, and when there is no such file or code.
    """
    deadline = Deadline(timeout)
    if what is None:
        what = _current()
    if isinstance(what, str):
        return _explain_text(what, deadline)
    if isinstance(what, os.PathLike):
        return _explain_path(os.fspath(what), deadline)
    if isinstance(what, int) and not isinstance(what, bool):
        return _explain_named(str(int(what)), deadline)
    if not isinstance(what, BaseException):
        raise TypeError(f"explain takes an exception, a text, a path or a code, not {type(what).__name__}")
    text = _traceback(what)
    verdict = _judge_exception(what, text, deadline)
    verdict = replace(verdict, text=_LINE_OF_INPUT.sub("", verdict.text))
    oom = oom_of(what)
    if batch is not None and verdict.found and oom is not None:
        verdict = replace(verdict, fits=_fits_or_none(verdict, oom, batch, None, deadline.left()))
    verdict = replace(verdict, retry=_retry(verdict))
    if verdict.found and collect:
        verdict = _collect.add(verdict, deadline, OF_TORCH in text)
    if verdict.found and not under_run():
        verdict = replace(verdict, unknown=_collect.LIMITS)
    return verdict
