# SPDX-License-Identifier: Apache-2.0
"""The verdict after an uncaught CUDA error. The error itself is shown first, the usual way.

Nothing in here may raise or keep the program waiting: it runs when something else has already gone wrong."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional

from . import _memory
from ._explain import TIMEOUT, explain, is_cuda_error
from ._program import under_run
from ._verdict import Verdict

_MARK = "_cuwhy_verdict"


def remembered(exc: BaseException) -> Optional[Verdict]:
    """The verdict that this exception already has."""
    found = getattr(exc, _MARK, None)
    return found if isinstance(found, Verdict) else None


def mark(exc: BaseException, verdict: Optional[Verdict]) -> None:
    """It was explained: nothing else explains it again."""
    try:
        if verdict is not None:
            setattr(exc, _MARK, verdict)
    except Exception:
        pass


def verdict_of(exc: Optional[BaseException], timeout: float) -> Optional[Verdict]:
    """The verdict on a CUDA error that has none yet. Never raises; None: not CUDA's, already shown, or no answer."""
    try:
        if exc is None or not isinstance(exc, Exception) or under_run() or remembered(exc) or not is_cuda_error(exc):
            return None
        verdict = explain(exc, collect=True, timeout=timeout)
        if not verdict.found:
            return None
        mark(exc, verdict)
        return verdict
    except BaseException:
        return None


def show(verdict: Optional[Verdict]) -> None:
    """Prints to standard error, where the traceback is."""
    try:
        if verdict is not None and sys.stderr is not None:
            print(f"\n{verdict}", file=sys.stderr, end="", flush=True)
    except Exception:
        pass


class _Hooks:
    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.wants_history = False
        self.keeps_history = False
        self.active = True
        self.before: Callable[..., Any] = sys.excepthook
        self.before_thread: Callable[..., Any] = threading.excepthook
        self.shell: Any = None

    def uncaught(self, kind: Any, exc: Any, trace: Any) -> None:
        self.before(kind, exc, trace)
        if self.active:
            show(verdict_of(exc, self.timeout))

    def uncaught_in_thread(self, args: Any) -> None:
        self.before_thread(args)
        if self.active:
            show(verdict_of(args.exc_value, self.timeout))

    def remember(self, *args: Any) -> None:
        """PyTorch may be loaded, and first used, long after `enable`: this is tried again before every cell."""
        if self.active and self.wants_history and not self.keeps_history:
            self.keeps_history = _memory.history_on()

    def after_cell(self, result: Any) -> None:
        if self.active:
            show(verdict_of(getattr(result, "error_in_exec", None), self.timeout))

    def install(self) -> None:
        sys.excepthook = self.uncaught
        threading.excepthook = self.uncaught_in_thread
        ipython = sys.modules.get("IPython")
        if ipython is not None:  # shows errors itself; its own event comes after that
            self.shell = ipython.get_ipython()
        if self.shell is not None:
            self.shell.events.register("post_run_cell", self.after_cell)
            self.shell.events.register("pre_run_cell", self.remember)

    def remove(self) -> None:
        """Another hook may have been installed since: then ours stays, and passes everything through."""
        self.active = False
        if sys.excepthook == self.uncaught:
            sys.excepthook = self.before
        if threading.excepthook == self.uncaught_in_thread:
            threading.excepthook = self.before_thread
        if self.shell is not None:
            self.shell.events.unregister("post_run_cell", self.after_cell)
            self.shell.events.unregister("pre_run_cell", self.remember)
        if self.keeps_history:
            _memory.history_off()
            self.keeps_history = False


_hooks: Optional[_Hooks] = None


def enable(*, memory_history: bool = False, timeout: float = TIMEOUT) -> None:
    """From now on every uncaught CUDA error is followed by its verdict: in the main program, threads, notebook cells.

    It takes at most `timeout` seconds. With `memory_history` PyTorch records the lines of its allocations from now on, for
    which it has to be loaded (in a notebook: by the next cell); that costs time, and starts CUDA. Does nothing under
    `cuwhy run`, which explains errors itself. Prints nothing, and as the last line of a cell shows nothing.
    """
    global _hooks
    if under_run():
        return
    if _hooks is None:
        _hooks = _Hooks(timeout)
        _hooks.install()
    _hooks.timeout = timeout
    _hooks.wants_history = memory_history or _hooks.wants_history
    _hooks.remember()


def disable() -> None:
    """Undoes `enable`."""
    global _hooks
    if _hooks is not None:
        _hooks.remove()
        _hooks = None
