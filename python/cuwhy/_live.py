# SPDX-License-Identifier: Apache-2.0
"""What the recorder knows at this moment, when the program runs under `cuwhy run`.

The recorder writes into memory of this process, which is laid out like the file that `cuwhy run` writes at the end: a copy of it is a
recording. It asks nothing of the GPU."""

from __future__ import annotations

from contextlib import contextmanager
from typing import IO, Iterator, List, Optional, Tuple

from ._program import Unnamed, under_run

_NAME = "/memfd:cuwhy "
_MAGIC = b"CUWHYREC"
_BYTES_MAX = 1 << 30


def _segments() -> List[Tuple[int, int]]:
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if _NAME in line and line.split()[1].startswith("r"):
                start, _, end = line.split()[0].partition("-")
                found.append((int(start, 16), int(end, 16)))
    return sorted(found)


def _copy(out: IO[bytes]) -> bool:
    segments = _segments()
    if not segments or segments[-1][1] - segments[0][0] > _BYTES_MAX:
        return False
    base = segments[0][0]
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for start, end in segments:
            memory.seek(start)
            part = memory.read(end - start)
            if start == base and not part.startswith(_MAGIC):
                return False
            out.seek(start - base)
            out.write(part)
    return True


@contextmanager
def recording() -> Iterator[Optional[Unnamed]]:
    """A recording of this process so far, which nobody else can read; None: there is no recorder."""
    if not under_run():
        yield None
        return
    with Unnamed() as copy:
        yield copy if _copy(copy.file) else None
