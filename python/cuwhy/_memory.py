# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory history, and its snapshot at the moment when memory ran out.

A snapshot taken later shows only what the exception has left, so PyTorch is asked to call us at the failure
itself. It cannot be asked to stop: the callback does nothing once nobody wants the history."""

from __future__ import annotations

import io
import pickle
import sys
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, NamedTuple, Optional

from ._program import Unnamed

_ENTRIES = 100000
_BYTES_MAX = 512 << 20
_SECONDS_MAX = 20.0  # the most that errors the program handles may cost in total


class Moment(NamedTuple):
    """PyTorch's memory as it was, pickled, and what was known about the device."""

    data: bytes
    oom: Optional[Dict[str, int]]


class _Bounded(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + len(data) > _BYTES_MAX:
            raise ValueError("the snapshot is too large")
        return super().write(data)


class _History:
    users = 0
    ours = False  # turned on by us, not by the program itself
    observed = False
    spent = 0.0
    last: Optional[Moment] = None


def _memory() -> Any:
    return getattr(getattr(sys.modules.get("torch"), "cuda", None), "memory", None)


def _c(name: str) -> Any:
    return getattr(getattr(sys.modules.get("torch"), "_C", None), name, None)


def _take(oom: Optional[Dict[str, int]]) -> Optional[Moment]:
    out = _Bounded()
    try:
        pickle.dump(_memory()._snapshot(), out, protocol=4)
        return Moment(out.getvalue(), oom)
    except Exception:
        return None


def _on_oom(device: int, request: int, total: int, free: int) -> None:
    """Called by PyTorch, which is about to raise; an exception here would replace its own."""
    try:
        _History.last = None
        if not _History.users or _History.spent >= _SECONDS_MAX:
            return
        began = time.monotonic()
        _History.last = _take({"device": int(device), "request": int(request), "total": int(total), "free": int(free)})
        _History.spent += time.monotonic() - began
    except BaseException:
        pass


def _observe() -> None:
    attach = _c("_cuda_attach_out_of_memory_observer")
    if attach is not None and not _History.observed:
        try:
            attach(_on_oom)
            _History.observed = True
        except Exception:
            pass


def _start() -> None:
    """Asked about its history before CUDA is started, PyTorch 2.11 crashes: it has no allocator yet."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if not cuda.is_initialized():
        cuda.init()


def history_on() -> bool:
    """From now on PyTorch records who allocated each block, which costs time, and starts CUDA. False: it is not loaded, or cannot."""
    try:
        if not _History.users:
            _start()
            enabled = _c("_cuda_isHistoryEnabled")
            _History.ours = not (enabled is not None and enabled())
            if _History.ours:
                _memory()._record_memory_history(max_entries=_ENTRIES)
        _History.users += 1
    except Exception:
        return False
    _observe()
    return True


def history_off() -> None:
    """Undoes one `history_on` that was true. A history that the program itself had switched on stays."""
    _History.users -= 1
    if _History.users:
        return
    _History.last = None
    try:
        if _History.ours:
            _memory()._record_memory_history(enabled=None)
    except Exception:
        pass


def history_is_on() -> bool:
    return _History.users > 0


def moment(of_torch: bool) -> Optional[Moment]:
    """The snapshot of PyTorch's last allocation failure if the error is one (`of_torch`), else one taken now."""
    last, _History.last = _History.last, None
    return last if last is not None and of_torch else _take(None)


@contextmanager
def written(data: bytes) -> Iterator[Unnamed]:
    """A file that nobody else can read, for as long as it is needed."""
    with Unnamed() as copy:
        copy.file.write(data)
        yield copy
