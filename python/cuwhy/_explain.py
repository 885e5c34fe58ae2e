# SPDX-License-Identifier: Apache-2.0
"""From an exception or a text to a verdict."""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import replace
from typing import Any, Iterator, List, Optional, Set, Union

from . import _collect
from ._program import CuwhyError, Deadline, ask, ask_json, under_run
from ._verdict import Verdict, verdict_from_json

TIMEOUT = 10.0
_OF_TORCH = "Tried to allocate"  # printed by PyTorch's allocator, for GPU memory
_CHAIN_MAX = 64
_MESSAGE_MAX = 1 << 16
_HEAD, _TAIL = 1 << 18, 3 << 18  # the parts that are kept of a longer text

# meaningless for an exception: the user has never seen that input
_LINE_OF_INPUT = re.compile(r"^ +the error is on line \d+ of standard input\n", re.MULTILINE)

# An exception without any of these in its name or message is not CUDA's. cuwhy decides about the others.
_WORDS = ("cuda", "cublas", "cudnn", "cusolver", "cusparse", "cufft", "nvrtc", "nvml", "nvidia", "nccl", "triton", "cupy",
          "device-side assert")


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """The exception, its causes, and those it groups."""
    waiting: List[BaseException] = [exc]
    seen: Set[int] = set()
    while waiting and len(seen) < _CHAIN_MAX:
        e = waiting.pop(0)
        if id(e) in seen:
            continue
        seen.add(id(e))
        yield e
        inner: Any = getattr(e, "exceptions", None)
        if isinstance(inner, tuple):
            waiting += [i for i in inner if isinstance(i, BaseException)]
        after = e.__cause__ if e.__cause__ is not None or e.__suppress_context__ else e.__context__
        if after is not None:
            waiting.append(after)


def _message(exc: BaseException) -> str:
    """Its type and text. Getting the text runs the program's own code."""
    kind = type(exc)
    try:
        text = str(exc)[:_MESSAGE_MAX]
    except Exception:
        text = ""
    return f"{kind.__module__}.{kind.__qualname__}: {text}"


def is_cuda_error(exc: BaseException) -> bool:
    """May this be a CUDA failure, judging by its type and message? Quick; `explain` knows for sure."""
    return any(word in _message(e).lower() for e in _chain(exc) for word in _WORDS)


def _traceback(exc: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))
    except Exception:
        text = _message(exc)
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


def explain(what: Union[BaseException, str, None] = None, *, collect: bool = False, timeout: float = TIMEOUT) -> Verdict:
    """Why CUDA failed, from an exception or a text (a log, a traceback); by default the current exception, or the last
    uncaught one.

    `collect` adds PyTorch's memory statistics, a snapshot of its memory if that ran out, and what the doctor finds on
    this machine. Raises CuwhyError when cuwhy itself fails or needs more than `timeout` seconds.
    """
    deadline = Deadline(timeout)
    if what is None:
        what = _current()
    if isinstance(what, str):
        return judge(what, deadline)
    text = _traceback(what)
    verdict = judge(text, deadline)
    verdict = replace(verdict, text=_LINE_OF_INPUT.sub("", verdict.text))
    if verdict.found and collect:
        verdict = _collect.add(verdict, deadline, _OF_TORCH in text)
    if verdict.found and not under_run():
        verdict = replace(verdict, unknown=_collect.LIMITS)
    return verdict
