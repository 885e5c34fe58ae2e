# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the program: those that belong together, and what they say."""

from __future__ import annotations

import sys
from typing import Any, Iterator, List, Optional, Set

OF_TORCH = "Tried to allocate"  # printed by PyTorch's allocator, for GPU memory
_CHAIN_MAX = 64
_MESSAGE_MAX = 1 << 16


def chain(exc: BaseException) -> Iterator[BaseException]:
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


def message(exc: BaseException) -> str:
    """Its type and text. Getting the text runs the program's own code."""
    kind = type(exc)
    try:
        text = str(exc)[:_MESSAGE_MAX]
    except Exception:
        text = ""
    return f"{kind.__module__}.{kind.__qualname__}: {text}"


def oom_of(exc: Optional[BaseException]) -> Optional[BaseException]:
    """Of an exception (by default the current one) and its causes, that of PyTorch's allocator for want of GPU memory."""
    exc = sys.exc_info()[1] if exc is None else exc
    for e in chain(exc) if isinstance(exc, BaseException) else ():
        if OF_TORCH in message(e) and "out of memory" in message(e).lower():
            return e
    return None
