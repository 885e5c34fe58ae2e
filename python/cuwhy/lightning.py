# SPDX-License-Identifier: Apache-2.0
"""Lightning: `Trainer(callbacks=[cuwhy.lightning.CuwhyCallback()])` logs the verdict when CUDA fails in a training.

Needs the package `lightning`, or the older `pytorch_lightning`."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional

from ._callback import told
from ._explain import TIMEOUT
from ._verdict import Verdict

__all__ = ["CuwhyCallback"]


def _base() -> Any:
    """The two packages have a class each: the one that the program uses."""
    if "lightning" not in sys.modules and "pytorch_lightning" in sys.modules:
        return importlib.import_module("pytorch_lightning").Callback
    try:
        return importlib.import_module("lightning.pytorch").Callback
    except ImportError:
        return importlib.import_module("pytorch_lightning").Callback


class CuwhyCallback(_base()):  # type: ignore[misc]
    """The verdict on a CUDA error goes to the logger `cuwhy`, to Lightning's own loggers that take texts, and to the files
    cuwhy-verdict.json and .txt in the folder of its logs. The error itself is unchanged."""

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        super().__init__()
        self.verdict: Optional[Verdict] = None
        """The verdict, after a CUDA error."""
        self._timeout = timeout

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        folder = getattr(trainer, "log_dir", None) or getattr(trainer, "default_root_dir", None)
        self.verdict = told(exception, folder, self._timeout) or self.verdict
        if self.verdict is None:
            return
        for logger in getattr(trainer, "loggers", ()):
            try:  # TensorBoard and those that follow it
                logger.experiment.add_text("cuwhy", f"```\n{self.verdict}\n```", getattr(trainer, "global_step", 0))
            except Exception:
                continue
