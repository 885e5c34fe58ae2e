# SPDX-License-Identifier: Apache-2.0
"""`with cuwhy.watch():` the verdict on a CUDA error that leaves the block."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from . import _memory
from ._explain import TIMEOUT
from ._hooks import remembered, show, verdict_of
from ._program import under_run
from ._verdict import Verdict


class Watch:
    """Made by `watch`."""

    def __init__(self, *, quiet: bool = False, memory_history: bool = False, timeout: float = TIMEOUT) -> None:
        self.verdict: Optional[Verdict] = None
        """The verdict, after a CUDA error."""
        self._quiet = quiet
        self._history = memory_history
        self._timeout = timeout
        self._keeps = False

    def __enter__(self) -> "Watch":
        if self._history and not under_run():
            self._keeps = _memory.history_on()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], exc: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if exc is not None:
            fresh = verdict_of(exc, self._timeout)
            self.verdict = fresh or remembered(exc)
            if not self._quiet:
                show(fresh)
        if self._keeps:
            _memory.history_off()
        self._keeps = False


def watch(*, quiet: bool = False, memory_history: bool = False, timeout: float = TIMEOUT) -> Watch:
    """A block whose CUDA errors are explained, on standard error and in the `verdict` attribute.

    The error itself leaves the block unchanged. `quiet` prints nothing; `memory_history` lets PyTorch record the lines of
    its allocations meanwhile, and an out-of-memory error is explained with them. Under `cuwhy run` it does nothing:
    that explains the error itself.
    """
    return Watch(quiet=quiet, memory_history=memory_history, timeout=timeout)
