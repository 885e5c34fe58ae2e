# SPDX-License-Identifier: Apache-2.0
"""What can be known inside a process that was not started under `cuwhy run`, beside the text of its exception.

Nothing here imports PyTorch, starts CUDA or calls the driver: after a failure such a call may hang, or fail again."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._program import CuwhyError, Deadline, ask, ask_json
from ._verdict import Verdict, verdict_from_json

LIMITS: Tuple[str, ...] = (
    "which kernel failed, at which address, and the line that launched it",
    "the calls of the CUDA driver, and memory that PyTorch's allocator does not manage",
    "the other processes of the program",
)
"""What cannot be known without the recorder, which has to be loaded before the program starts: `cuwhy run python …`,
for a notebook `cuwhy run jupyter lab`."""

_DOCTOR_SECONDS = 4
_RANK = {"possible": 0, "likely": 1, "certain": 2}
_STATS = {
    "allocated": "allocated_bytes.all.current",
    "allocated_peak": "allocated_bytes.all.peak",
    "reserved": "reserved_bytes.all.current",
    "reserved_peak": "reserved_bytes.all.peak",
    "inactive_split": "inactive_split_bytes.all.current",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


def _cuda() -> Any:
    """torch.cuda, if the program has loaded it and has begun to use it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        return cuda if cuda is not None and cuda.is_initialized() else None
    except Exception:
        return None


def _torch() -> Optional[Dict[str, Any]]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    built: Any = getattr(getattr(torch, "version", None), "cuda", None)
    return {"version": str(getattr(torch, "__version__", "")), "cuda": built, "initialized": _cuda() is not None}


def _devices() -> List[Dict[str, Any]]:
    """What PyTorch's allocator says of itself, for every GPU that it has used. It keeps these numbers on the host."""
    cuda, found = _cuda(), []
    try:
        for index in range(min(int(cuda.device_count()), 64) if cuda is not None else 0):
            stats = cuda.memory_stats(index)
            if stats.get(_STATS["reserved_peak"]):
                found.append({"device": index, **{name: int(stats.get(key, 0)) for name, key in _STATS.items()}})
    except Exception:
        return found
    return found


def _snapshot(deadline: Deadline) -> Optional[Verdict]:
    """PyTorch's own snapshot of its memory, judged. It knows of an out-of-memory error only when its history was on."""
    memory: Any = getattr(_cuda(), "memory", None)
    if memory is None or not hasattr(memory, "_dump_snapshot"):
        return None
    folder = tempfile.mkdtemp(prefix="cuwhy-")
    path = os.path.join(folder, "snapshot.pickle")
    try:
        memory._dump_snapshot(path)
        answer = ask_json(["explain", "--json", path], "", deadline)
        text = ask(["explain", "--color", "never", path], "", deadline)[1]
        return verdict_from_json(answer, text.replace(path, "the snapshot"))
    except Exception:
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_checks: Optional[List[Mapping[str, Any]]] = None


def _doctor(deadline: Deadline) -> Optional[List[Mapping[str, Any]]]:
    """The doctor's lines about this machine and this process, asked once."""
    global _checks
    if _checks is None:
        try:
            answer = ask_json(["doctor", "--json", "--timeout", str(_DOCTOR_SECONDS), "--pid", str(os.getpid())], "",
                              deadline)
        except CuwhyError:
            return None
        checks = answer.get("checks")
        _checks = [c for c in checks if isinstance(c, dict)] if isinstance(checks, list) else []
    return _checks


def _size(n: int) -> str:
    return f"{n / (1 << 30):.1f} GiB" if n >= 1 << 30 else f"{n / (1 << 20):.1f} MiB"


def _lines(label: str, texts: List[str]) -> str:
    """In the manner of the report: a word in front, the rest under each other."""
    out = []
    for i, text in enumerate(texts):
        first = f"  {label:<7}" if i == 0 else " " * 9
        out.append(textwrap.fill(text, 100, initial_indent=first, subsequent_indent=" " * 9, break_long_words=False))
    return "\n".join(out) + "\n" if out else ""


def _told(collected: Mapping[str, Any]) -> str:
    here = [f"PyTorch on device {d['device']}: {_size(d['allocated'])} in tensors (at most {_size(d['allocated_peak'])}), "
            f"{_size(d['reserved'])} reserved, {d['ooms']} times out of memory" for d in collected["devices"]]
    bad = [f"{c.get('status')}: {c.get('text')}" for c in collected["doctor"] or [] if c.get("status") in ("FAIL", "WARN")]
    if collected["doctor"] is None:
        bad = ["the doctor could not be asked"]
    return _lines("HERE", here) + _lines("DOCTOR", bad[:8])


def limits_text() -> str:
    """What the report says of what it cannot know."""
    return _lines("NOTE", ["this process was not started under `cuwhy run`: not known are " + "; ".join(LIMITS)])


def _is_memory(verdict: Verdict) -> bool:
    return verdict.cause.startswith("oom") or (verdict.error is not None and verdict.error.code == 2)


def add(verdict: Verdict, deadline: Deadline) -> Verdict:
    """The verdict, with what was collected. That of a snapshot takes its place when it is surer."""
    collected: Dict[str, Any] = {"torch": _torch(), "devices": _devices(), "doctor": None, "snapshot": None}
    snapshot = _snapshot(deadline) if _is_memory(verdict) else None
    collected["doctor"] = _doctor(deadline) if not deadline.passed() else None
    if snapshot is not None and snapshot.found:
        collected["snapshot"] = snapshot.raw
        if _RANK.get(snapshot.certainty, 0) > _RANK.get(verdict.certainty, 0):
            where = snapshot.where or verdict.where
            verdict = replace(snapshot, where=where)
    return replace(verdict, collected=collected, text=verdict.text.rstrip("\n") + "\n" + _told(collected) + limits_text())
