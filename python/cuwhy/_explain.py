# SPDX-License-Identifier: Apache-2.0
"""From an exception or a text to a verdict."""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import replace
from typing import Optional, Union

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


# what a smaller batch does about it: True and False, or whatever the batch that fits says
_RETRY = {"oom-capacity": True, "oom-request-too-large": True, "oom-fragmentation": True, "oom-other-process": None,
          "oom-other-library": None, "oom-memory-fraction": None, "oom-masked-as-library-error": None,
          # these only come later
          "oom-growth": False, "oom-graph-retention": False, "oom-eval-without-no-grad": False,
          # and these have nothing to do with it
          "oom-pinned-host": False, "oom-rank0-checkpoint-load": False}


def _retry(verdict: Verdict) -> Optional[bool]:
    if verdict.sticky or not verdict.found:
        return False if verdict.sticky else None
    helps = _RETRY.get(verdict.cause)
    return helps if helps is False or verdict.fits is None else verdict.fits > 0


def _recorded(exc: BaseException, deadline: Deadline) -> Optional[Verdict]:
    """The verdict of the recorder, if there is one and it is about this error: the first that ran out of memory."""
    oom = oom_of(exc)
    said = _fits.request_of(str(oom)) if oom is not None else None
    try:
        with _live.recording() as path:
            if path is None or said is None:
                return None
            verdict = verdict_from_json(ask_json(["explain", "--json", path], "", deadline),
                                        ask(["explain", "--color", "never", path], "", deadline)[1].replace(path, "this process"))
        request = (verdict.memory or {}).get("request")
        return verdict if isinstance(request, int) and abs(request - said) <= said / 100 else None
    except Exception:
        return None


def explain(what: Union[BaseException, str, None] = None, *, collect: bool = False, batch: Optional[int] = None,
            timeout: float = TIMEOUT) -> Verdict:
    """Why CUDA failed, from an exception or a text (a log, a traceback); by default the current exception, or the last
    uncaught one.

    `collect` adds PyTorch's memory statistics, a snapshot of its memory if that ran out, and what the doctor finds on
    this machine. `batch`, the size of the batch that failed, adds the one that would have fit. Raises CuwhyError when cuwhy itself fails or needs more than `timeout` seconds.
    """
    deadline = Deadline(timeout)
    if what is None:
        what = _current()
    if isinstance(what, str):
        return judge(what, deadline)
    text = _traceback(what)
    verdict = _recorded(what, deadline) or judge(text, deadline)
    verdict = replace(verdict, text=_LINE_OF_INPUT.sub("", verdict.text))
    if batch is not None and verdict.found:
        verdict = replace(verdict, fits=_fits.fits(what, batch=batch, timeout=deadline.left()))
    verdict = replace(verdict, retry=_retry(verdict))
    if verdict.found and collect:
        verdict = _collect.add(verdict, deadline, OF_TORCH in text)
    if verdict.found and not under_run():
        verdict = replace(verdict, unknown=_collect.LIMITS)
    return verdict
