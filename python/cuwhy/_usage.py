# SPDX-License-Identifier: Apache-2.0
"""How much GPU memory a piece of a program needs, and which lines: PyTorch's own statistics and history.

Works on a real GPU and on a simulated one. PyTorch is not imported by this."""

from __future__ import annotations

import re
import sys
from typing import Any, Dict, List, NamedTuple, Optional

from . import _memory
from ._program import Deadline, ask_json

_CURRENT, _PEAK = "allocated_bytes.all.current", "allocated_bytes.all.peak"
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?\s*", re.ASCII)
_LINES = 10


def size_of(text: "str | int | float") -> int:
    """Bytes: "2 GB" is 2,000,000,000, "2 GiB" 2,147,483,648, as PyTorch's messages have it."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        number = float(text)
    else:
        found = _SIZE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"{text!r} is not a size: for example \"2 GB\" or \"512 MiB\"")
        step = 1024 if found.group(3) else 1000
        number = float(found.group(1)) * float(step ** (" KMGT".index(found.group(2).upper() or " ")))
    if not 0 <= number < float("inf"):
        raise ValueError(f"{text!r} is not a size")
    return int(number)


def words_of(n: int) -> str:
    """As people read it."""
    sign, size = ("-" if n < 0 else ""), float(abs(n))
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{sign}{size:.0f} {unit}" if unit == "bytes" else f"{sign}{size:.1f} {unit}"


def _stats() -> Dict[int, Dict[str, int]]:
    """Of every GPU that PyTorch has used, from its allocator: the driver is not asked."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return {}
        all_of_them = {i: cuda.memory_stats(i) for i in range(min(int(cuda.device_count()), 64))}
        return {i: s for i, s in all_of_them.items() if s.get(_PEAK)}
    except Exception:
        return {}


def _forget_peaks() -> None:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    for device in _stats():
        try:
            cuda.reset_peak_memory_stats(device)  # type: ignore[union-attr]
        except Exception:
            pass


class Line(NamedTuple):
    """What one line held when the most was allocated."""

    file: str
    line: int
    function: Optional[str]
    bytes: int
    blocks: int


class Used(NamedTuple):
    """Tensors of one GPU, in bytes."""

    device: int
    before: int
    after: int
    peak: int

    @property
    def added(self) -> int:
        """At the peak, on top of what was there before."""
        return max(self.peak - self.before, 0)


class Measure:
    """From `begin` to `end`."""

    def __init__(self) -> None:
        self._before: Dict[int, int] = {}
        self._keeps = False

    def begin(self) -> None:
        """Peaks are counted from here, also those that torch.cuda.max_memory_allocated returns. Starts CUDA if PyTorch is loaded."""
        self._before = {i: int(s.get(_CURRENT, 0)) for i, s in _stats().items()}
        _forget_peaks()
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        try:  # the history starts CUDA
            self._keeps = cuda is not None and bool(cuda.is_available()) and _memory.history_on()
        except Exception:
            self._keeps = False

    def used(self) -> List[Used]:
        """So far, for each GPU on which anything was."""
        return [Used(i, self._before.get(i, 0), int(s.get(_CURRENT, 0)), int(s.get(_PEAK, 0))) for i, s in _stats().items()]

    def lines(self, device: int, deadline: Deadline) -> List[Line]:
        """Those that held the most when the most was allocated; empty where PyTorch was not loaded when it began."""
        if not self._keeps:
            return []
        try:
            taken = _memory.moment(False)
            if taken is None:
                return []
            with _memory.written(taken.data) as copy:
                answer: Dict[str, Any] = ask_json(["memory", "--json", "--at", "peak"], "", deadline, copy)
            held = [h for d in answer["devices"] if d["device"] == device for h in d["holders"]]
            return [Line(h["file"], h["line"], h.get("function"), h["bytes"], h["blocks"]) for h in held
                    if isinstance(h.get("line"), int) and h["bytes"] > 0][:_LINES]
        except Exception:
            return []

    def end(self) -> None:
        if self._keeps:
            _memory.history_off()
        self._keeps = False


def table(lines: List[Line]) -> str:
    """One line of text for each."""
    return "".join(f"  {words_of(x.bytes):>10}  {x.file}:{x.line}{' in ' + x.function if x.function and x.function[0] != '<' else ''}"
                   f"  ({x.blocks} tensor{'' if x.blocks == 1 else 's'})\n" for x in lines)
