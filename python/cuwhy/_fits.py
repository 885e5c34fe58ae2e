# SPDX-License-Identifier: Apache-2.0
"""The batch that would have fit, after PyTorch ran out of memory: what the recorder's recording says when it is played back, or what a trial finds."""

from __future__ import annotations

import re
import sys
import traceback
from typing import Any, Callable, Iterator, Mapping, Optional

from ._exceptions import chain
from ._program import Deadline

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_REQUEST = re.compile(r"Tried to allocate ([\d.]+) (bytes|KiB|MiB|GiB|TiB)")


class Fits(int):
    """The largest batch that would have fit; 0: not even 1, or a smaller one does not help (`because`)."""

    exact: bool
    """It was tried, and the next one does not fit."""
    because: str
    """How it was found."""

    def __new__(cls, batch: int, exact: bool, because: str) -> "Fits":
        self = super().__new__(cls, batch)
        self.exact, self.because = exact, because
        return self


def request_of(text: str) -> Optional[int]:
    """Bytes that could not be allocated."""
    found = _REQUEST.search(text)
    return None if found is None else int(float(found.group(1)) * _UNITS[found.group(2)])


def same_request(asked: int, said: int) -> bool:
    """PyTorch's message has two decimals, and may have the segment that it wanted from the driver for what was asked for."""
    segment = 2 << 20 if asked <= 1 << 20 else 20 << 20 if asked < 10 << 20 else -(-asked >> 21) << 21
    return any(abs(size - said) <= said / 100 for size in (asked, segment))


def _frames(exc: BaseException) -> Iterator[Any]:
    trace = exc.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _played_back(memory: Optional[Mapping[str, Any]], batch: int) -> Optional[Fits]:
    """Of a verdict's `memory.fits`: a number where it is about this batch, else percents."""
    found = (memory or {}).get("fits") or {}
    if found.get("size") is not None and found.get("batch") == batch:
        return Fits(found["size"], False, "played back from the recording")
    part = found.get("millionths")
    return None if part is None else Fits(batch * part // 1000000, False, f"{part / 1e6:.1%} of it, played back from the recording")


def _forget(exc: BaseException) -> None:
    """The frames of the exception hold the tensors of the failed step; those that were looked at have a copy of their names, too."""
    for e in chain(exc):
        traceback.clear_frames(e.__traceback__)
        for frame in _frames(e):
            frame.f_locals  # up to Python 3.12, this brings the copy up to date


def _try(step: Callable[[int], Any], batch: int, oom_type: Any) -> bool:
    """In the second step, PyTorch's cache is as a loop finds it: cut into the pieces of the step before."""
    cuda: Any = getattr(sys.modules["torch"], "cuda")
    cuda.empty_cache()
    try:
        step(batch)
        step(batch)
        cuda.synchronize()
        return True
    except oom_type as e:
        _forget(e)
    cuda.empty_cache()
    return False


def _search(step: Callable[[int], Any], guess: int, batch: int, oom_type: Any, deadline: Deadline) -> Optional[Fits]:
    """By halves between the largest that ran and the smallest that did not; the first try is what was played back, or half."""
    low, high, at = 0, batch, min(max(guess, 1), batch - 1)
    for _ in range(64):
        if high - low <= 1 or deadline.passed():
            break
        if _try(step, at, oom_type):
            low = at
            at = min(low + max(low // 16, 1), high - 1) if high == batch else (low + high) // 2
        else:
            high = at
            at = (low + high) // 2
        if at <= low:
            at = low + 1
    exact = high - low <= 1
    return Fits(low, exact, f"two steps with {low} ran, with {high} they did not" if low else "not even a step with 1 ran") if low or exact else None


def batch_for(found: BaseException, memory: Optional[Mapping[str, Any]], batch: int, step: Optional[Callable[[int], Any]],
              timeout: float) -> Optional[Fits]:
    """The largest batch that would have fit; None: it cannot be told. `memory` is the verdict's. See cuwhy.fits."""
    if batch == 1:
        return Fits(0, True, "it failed with a batch of 1")
    torch: Any = sys.modules.get("torch")
    guess = _played_back(memory, batch)
    if step is None or torch is None:
        return guess
    _forget(found)
    return _search(step, int(guess) if guess else batch // 2, batch, type(found), Deadline(timeout))
