# SPDX-License-Identifier: Apache-2.0
"""The verdict as an object: the keys of the JSON contract (docs/python.md), typed."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple


@dataclass(frozen=True)
class Error:
    """What CUDA returned."""

    code: Optional[int]
    name: Optional[str]
    api: Optional[str]
    sticky: bool = False
    """Every further CUDA call in the process returns this error."""


@dataclass(frozen=True)
class Frame:
    """One line of a Python stack."""

    file: str
    line: Optional[int]
    function: Optional[str]


@dataclass(frozen=True)
class Place(Frame):
    """A line, and how the program got there; the innermost frame comes first."""

    stack: Tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """The kernel that failed, as it was launched."""

    name: Optional[str]
    grid: Optional[Tuple[int, ...]]
    block: Optional[Tuple[int, ...]]
    shared: Optional[int]
    stream: Any


@dataclass(frozen=True)
class Fault:
    """The thread that faulted, and the memory that it accessed."""

    block: Optional[Tuple[int, ...]]
    thread: Optional[Tuple[int, ...]]
    address: Optional[str]
    access: Optional[str]
    bytes: Optional[int]
    pc: Optional[str]


@dataclass(frozen=True)
class Candidate:
    """A cause that fits, and the observation that would settle it."""

    cause: str
    certainty: str
    because: Optional[str] = None
    settle: Optional[str] = None


@dataclass(frozen=True)
class Evidence:
    source: str
    text: str


@dataclass(frozen=True)
class Fix:
    text: str
    command: Optional[str] = None


@dataclass(frozen=True)
class Verdict:
    """Why CUDA failed. `str()` is the report as `cuwhy` prints it, `raw` the whole JSON object."""

    cause: str
    certainty: str
    title: str
    error: Optional[Error] = None
    where: Optional[Place] = None
    noticed: Optional[Place] = None
    kernel: Optional[Kernel] = None
    fault: Optional[Fault] = None
    memory: Optional[Mapping[str, Any]] = None
    candidates: Tuple[Candidate, ...] = ()
    evidence: Tuple[Evidence, ...] = ()
    fix: Tuple[Fix, ...] = ()
    fits: Optional[int] = None
    """The batch that would have fit, if `explain` was told the one that failed; None: not known. See cuwhy.Fits."""
    retry: Optional[bool] = None
    """Would the same with a smaller batch get further? None: not known."""
    text: str = ""
    collected: Mapping[str, Any] = field(default_factory=dict)
    """What was collected in this process besides the text: see docs/develop/python.md."""
    unknown: Tuple[str, ...] = ()
    """What could not be known here, but would be under `cuwhy run`."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def found(self) -> bool:
        """Is there a CUDA failure at all?"""
        return self.cause != "none" and not (self.cause == "unknown" and self.error is None)

    @property
    def sticky(self) -> bool:
        """Does every further CUDA call in this process return this error?"""
        return self.error is not None and self.error.sticky

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def _object(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Tuple[Dict[str, Any], ...]:
    return tuple(v for v in value if isinstance(v, dict)) if isinstance(value, list) else ()


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _numbers(value: Any) -> Optional[Tuple[int, ...]]:
    return tuple(n for n in value if isinstance(n, int)) if isinstance(value, list) else None


def _frame(o: Dict[str, Any]) -> Frame:
    return Frame(_text(o.get("file")) or "?", _number(o.get("line")), _text(o.get("function")))


def _place(value: Any) -> Optional[Place]:
    o = _object(value)
    if not o:
        return None
    f = _frame(o)
    return Place(f.file, f.line, f.function, tuple(_frame(s) for s in _objects(o.get("stack"))))


def _error(value: Any) -> Optional[Error]:
    o = _object(value)
    if not o:
        return None
    return Error(_number(o.get("code")), _text(o.get("name")), _text(o.get("api")), o.get("sticky") is True)


def _kernel(value: Any) -> Optional[Kernel]:
    o = _object(value)
    if not o:
        return None
    return Kernel(_text(o.get("name")), _numbers(o.get("grid")), _numbers(o.get("block")), _number(o.get("shared")),
                  o.get("stream"))


def _fault(value: Any) -> Optional[Fault]:
    o = _object(value)
    if not o:
        return None
    return Fault(_numbers(o.get("block")), _numbers(o.get("thread")), _text(o.get("address")), _text(o.get("access")),
                 _number(o.get("bytes")), _text(o.get("pc")))


def verdict_from_json(o: Dict[str, Any], text: str = "") -> Verdict:
    """From the object that `cuwhy … --json` prints. What is missing or of the wrong type is None or empty."""
    return Verdict(
        cause=_text(o.get("cause")) or "unknown",
        certainty=_text(o.get("certainty")) or "possible",
        title=_text(o.get("title")) or "",
        error=_error(o.get("error")),
        where=_place(o.get("where")),
        noticed=_place(o.get("noticed")),
        kernel=_kernel(o.get("kernel")),
        fault=_fault(o.get("fault")),
        memory=_object(o.get("memory")) or None,
        candidates=tuple(Candidate(_text(c.get("cause")) or "unknown", _text(c.get("certainty")) or "possible",
                                   _text(c.get("because")), _text(c.get("settle")))
                         for c in _objects(o.get("candidates"))),
        evidence=tuple(Evidence(_text(e.get("source")) or "", _text(e.get("text")) or "")
                       for e in _objects(o.get("evidence"))),
        fix=tuple(Fix(_text(f.get("text")) or "", _text(f.get("command"))) for f in _objects(o.get("fix"))),
        text=text,
        raw=o,
    )
