# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer: `Trainer(..., callbacks=[cuwhy.transformers.CuwhyCallback()])` logs the verdict when CUDA fails.

Trainer has no event for an exception. So the callback wraps `train`, `evaluate` and `predict` of the trainer that it is given to;
one that is added later, by `add_callback`, does it by `attach(trainer)`."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable, Optional

from ._callback import told
from ._explain import TIMEOUT
from ._verdict import Verdict

__all__ = ["CuwhyCallback"]

_METHODS = ("train", "evaluate", "predict")


def _base() -> Any:
    return importlib.import_module("transformers").TrainerCallback


def _trainer_of(callback: Any) -> Any:
    """The trainer whose event this is: events do not name it, but it is up the stack."""
    kind = importlib.import_module("transformers").Trainer
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, kind) and callback in found.callback_handler.callbacks:
            return found
        frame = frame.f_back  # type: ignore[assignment]
    return None


class CuwhyCallback(_base()):  # type: ignore[misc]
    """The verdict on a CUDA error goes to the logger `cuwhy`, and to the files cuwhy-verdict.json and .txt in the output folder. The
    error itself is unchanged."""

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        super().__init__()
        self.verdict: Optional[Verdict] = None
        """The verdict, after a CUDA error."""
        self._timeout = timeout
        self._attached: Any = None

    def attach(self, trainer: Any) -> "CuwhyCallback":
        if self._attached is not trainer:
            self._attached = trainer
            for name in _METHODS:
                setattr(trainer, name, self._wrapped(trainer, getattr(trainer, name)))
        return self

    def _wrapped(self, trainer: Any, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except Exception as e:
                self.verdict = told(e, getattr(trainer.args, "output_dir", None), self._timeout) or self.verdict
                raise
        return call

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        trainer = _trainer_of(self)
        if trainer is not None:
            self.attach(trainer)
