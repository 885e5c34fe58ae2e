# SPDX-License-Identifier: Apache-2.0
"""What the callbacks for trainers share: the verdict on the exception that ends a training goes to its log, and to files beside it."""

from __future__ import annotations

import json
import logging
import os
from typing import Optional

from ._explain import TIMEOUT, explain, is_cuda_error
from ._hooks import mark, remembered
from ._program import under_run
from ._verdict import Verdict

log = logging.getLogger("cuwhy")


def _name() -> str:
    rank = os.environ.get("RANK", "0")
    return "cuwhy-verdict" if not rank.isdigit() or int(rank) == 0 else f"cuwhy-verdict-rank{int(rank)}"


def _write(verdict: Verdict, folder: Optional[str]) -> None:
    if not folder:
        return
    try:
        os.makedirs(folder, exist_ok=True)
        for suffix, text in ((".json", json.dumps(dict(verdict.raw))), (".txt", str(verdict))):
            with open(os.path.join(folder, _name() + suffix), "w", encoding="utf-8") as f:
                f.write(text)
    except (OSError, ValueError) as e:
        log.warning("cannot write the verdict to '%s': %s", folder, e)


def told(exc: BaseException, folder: Optional[str], timeout: float = TIMEOUT) -> Optional[Verdict]:
    """Logs the verdict on a CUDA error. Never raises; None: it is not CUDA's, or there is no answer."""
    try:
        if not isinstance(exc, Exception) or not is_cuda_error(exc):
            return None
        known = remembered(exc)
        verdict = known or explain(exc, collect=not under_run(), timeout=timeout)
        if not verdict.found:
            return None
        mark(exc, verdict)
        if known is None:
            log.error("%s", verdict)
        _write(verdict, folder)
        return verdict
    except BaseException:
        return None
