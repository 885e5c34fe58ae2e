# SPDX-License-Identifier: Apache-2.0
"""`cuwhy.held()`: which objects of this program keep its tensors alive, at this moment."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Mapping, NamedTuple, Optional, Tuple

from ._program import CuwhyError, Deadline, ask_json, under_run

_PR_SET_PTRACER = 0x59616D61


class Holder(NamedTuple):
    """An object, by the way the program reaches it, and the GPU memory that it keeps alive."""

    path: str
    kind: Optional[str]
    length: Optional[int]
    tensors: int
    bytes: int
    graph_bytes: int
    used_bytes: Optional[int]


class Held:
    """What `held` found, the most bytes first."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.bytes: int = raw["bytes"]
        self.holders: Tuple[Holder, ...] = tuple(Holder(*(h.get(name) for name in Holder._fields)) for h in raw["holders"])
        unheld = raw.get("unheld") or {}
        self.unheld_bytes: Optional[int] = unheld.get("bytes")
        self.whole: bool = bool(unheld.get("whole"))

    def __repr__(self) -> str:
        lines = [f"{h.bytes / 2 ** 20:10.1f} MiB  {h.path}" + (f" ({h.kind}" + (f" of {h.length})" if h.length else ")") if h.kind else "")
                 for h in self.holders]
        return "\n".join(lines) or "no object keeps a large part of the GPU memory"


def _allow(pid: int) -> None:
    """Where Yama is on, a process may not be read by its children, unless it says so: this one and its children, or (0) nobody again."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    except (OSError, AttributeError):
        pass


def held(timeout: float = 10.0) -> Held:
    """Asks `cuwhy memory --pid` about this process, which `cuwhy run` must have started.

    No code of the program runs for it, nothing is allocated on the GPU, and other threads go on.
    """
    if not under_run():
        raise CuwhyError("cuwhy.held() needs a program that 'cuwhy run' started")
    _allow(os.getpid())
    try:
        return Held(ask_json(["memory", "--pid", str(os.getpid()), "--json"], "", Deadline(timeout)))
    finally:
        _allow(0)
