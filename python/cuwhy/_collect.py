# SPDX-License-Identifier: Apache-2.0
"""What can be known inside a process that was not started under `cuwhy run`, besides its exception's text.

Nothing here imports PyTorch, starts CUDA or calls the driver: after a failure such a call may hang, or fail again."""

from __future__ import annotations

import os
import sys
import textwrap
from dataclasses import replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import _memory
from ._program import CuwhyError, Deadline, Unnamed, ask, ask_json
from ._verdict import Verdict, verdict_from_json

LIMITS: Tuple[str, ...] = (
    "which kernel failed, at which address, and the line that launched it",
    "CUDA driver calls, and memory that PyTorch's allocator does not manage",
    "the program's other processes",
)
"""What cannot be known without the recorder, which has to be loaded before the program starts: `cuwhy run python …`,
for a notebook `cuwhy run jupyter lab`."""

_DOCTOR_SECONDS = 4
_LINES = 5
# causes on which the allocator's history knows more than the error message
_OF_THIS_PROCESS = ("oom-capacity", "oom-fragmentation", "oom-growth", "oom-graph-retention", "oom-eval-without-no-grad")
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
    """torch.cuda, if the program has loaded it and started to use it."""
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
    """The statistics of PyTorch's allocator, for every GPU that it has used. They are kept on the host."""
    cuda, found = _cuda(), []
    try:
        for index in range(min(int(cuda.device_count()), 64) if cuda is not None else 0):
            stats = cuda.memory_stats(index)
            if stats.get(_STATS["reserved_peak"]):
                found.append({"device": index, **{name: int(stats.get(key, 0)) for name, key in _STATS.items()}})
    except Exception:
        return found
    return found


class _Judged(NamedTuple):
    verdict: Verdict
    oom: Optional[Mapping[str, int]]
    lines: List[Mapping[str, Any]]


def _holders(copy: Unnamed, deadline: Deadline) -> List[Mapping[str, Any]]:
    """The lines whose blocks held the most memory when it ran out."""
    try:
        answer = ask_json(["memory", "--json", "--at", "oom"], "", deadline, copy)
        held = [h for d in answer["devices"] for h in d["holders"] if isinstance(h.get("line"), int) and h["bytes"] > 0]
        return sorted(held, key=lambda h: -int(h["bytes"]))[:_LINES]
    except Exception:
        return []


def _snapshot(of_torch: bool, deadline: Deadline) -> Optional[_Judged]:
    """PyTorch's own memory snapshot, analyzed. It has an out-of-memory error only if its history was on."""
    taken = _memory.moment(of_torch) if _cuda() is not None else None
    if taken is None:
        return None
    try:
        with _memory.written(taken.data) as copy:
            answer = ask_json(["explain", "--json"], "", deadline, copy)
            text = ask(["explain", "--color", "never"], "", deadline, copy)[1]
            verdict = verdict_from_json(answer, text.replace(copy.path, "the snapshot"))
            return _Judged(verdict, taken.oom, _holders(copy, deadline) if verdict.found else [])
    except Exception:
        return None


_checks: Optional[List[Mapping[str, Any]]] = None


def _doctor(deadline: Deadline) -> Optional[List[Mapping[str, Any]]]:
    """The doctor's checks of this machine and this process, run once."""
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


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _size(n: int) -> str:
    return f"{n / (1 << 30):.1f} GiB" if n >= 1 << 30 else f"{n / (1 << 20):.1f} MiB"


def _lines(label: str, texts: List[str]) -> str:
    """Laid out like the report: a label in front, the rest below each other."""
    out = []
    for i, text in enumerate(texts):
        first = f"  {label:<7}" if i == 0 else " " * 9
        out.append(textwrap.fill(text, 100, initial_indent=first, subsequent_indent=" " * 9, break_long_words=False))
    return "\n".join(out) + "\n" if out else ""


def _told(collected: Mapping[str, Any]) -> str:
    here = [f"PyTorch on device {d['device']}: {_size(d['allocated'])} in tensors (at most {_size(d['allocated_peak'])}), "
            f"{_size(d['reserved'])} reserved, ran out of memory {_count(d['ooms'], 'time')}" for d in collected["devices"]]
    oom = collected["oom"]
    if oom:
        here.append(f"device {oom['device']} has {_size(oom['total'])}, of which {_size(oom['free'])} was free when "
                    f"{_size(oom['request'])} was requested")
    held = [f"{_size(h['bytes'])} in {_count(h['blocks'], 'block')} allocated at {h['file']}:{h['line']}" for h in collected["lines"]]
    bad = [f"{c.get('status')}: {c.get('text')}" for c in collected["doctor"] or [] if c.get("status") in ("FAIL", "WARN")]
    if collected["doctor"] is None:
        bad = ["the doctor could not be run"]
    return _lines("HERE", here) + _lines("HELD", held) + _lines("DOCTOR", bad[:8])


def limits_text() -> str:
    """What the report says about what it cannot know."""
    return _lines("NOTE", ["this process was not started under `cuwhy run`, so these are not known: " + "; ".join(LIMITS)])


def _is_memory(verdict: Verdict) -> bool:
    return verdict.cause.startswith("oom") or (verdict.error is not None and verdict.error.code == 2)


def _knows_better(snapshot: Verdict, verdict: Verdict) -> bool:
    """More certain; or as certain, about something that the error message can only hint at."""
    a, b = _RANK.get(snapshot.certainty, 0), _RANK.get(verdict.certainty, 0)
    return a > b or (a == b and snapshot.cause in _OF_THIS_PROCESS and verdict.cause in _OF_THIS_PROCESS)


def _joined(snapshot: Verdict, verdict: Verdict) -> Verdict:
    """The snapshot's verdict, with what only the error has: its code, and the size of the card."""
    known = {k: v for k, v in (snapshot.memory or {}).items() if v is not None}
    named = {c.cause for c in snapshot.candidates}
    return replace(snapshot, where=snapshot.where or verdict.where, error=verdict.error or snapshot.error,
                   memory={**(verdict.memory or {}), **known} or None,
                   candidates=snapshot.candidates + tuple(c for c in verdict.candidates if c.cause not in named
                                                          and c.cause not in _OF_THIS_PROCESS),
                   evidence=snapshot.evidence + tuple(e for e in verdict.evidence if e.source == "text"))


def add(verdict: Verdict, deadline: Deadline, of_torch: bool) -> Verdict:
    """The verdict, with what was collected; `of_torch`: PyTorch's allocator raised the error. A snapshot's verdict
    replaces it if it knows better."""
    collected: Dict[str, Any] = {"torch": _torch(), "devices": _devices(), "doctor": None, "snapshot": None, "oom": None,
                                 "lines": [], "history": _memory.history_is_on()}
    judged = _snapshot(of_torch, deadline) if _is_memory(verdict) else None
    collected["doctor"] = _doctor(deadline) if not deadline.passed() else None
    if judged is not None and judged.verdict.found:
        collected.update(snapshot=judged.verdict.raw, oom=judged.oom, lines=judged.lines)
        if _knows_better(judged.verdict, verdict):
            verdict = _joined(judged.verdict, verdict)
    return replace(verdict, collected=collected, text=verdict.text.rstrip("\n") + "\n" + _told(collected) + limits_text())
