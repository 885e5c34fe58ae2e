# SPDX-License-Identifier: Apache-2.0
"""pytest: the verdict in the report of a test that failed with a CUDA error.

A sticky error breaks CUDA for the rest of the process: later tests fail with the same error, and their reports name
the test that caused it."""

from __future__ import annotations

from typing import Any, Generator, Optional

import pytest

from ._hooks import verdict_of
from ._program import under_run
from ._verdict import Verdict

_TITLE = "cuwhy"


def pytest_addoption(parser: "pytest.Parser") -> None:
    group = parser.getgroup("cuwhy")
    group.addoption("--no-cuwhy", action="store_true", help="do not explain CUDA errors of failing tests")
    group.addoption("--cuwhy-timeout", type=float, default=10.0, metavar="SECONDS",
                    help="how long the explanation of one failing test may take (10)")


def pytest_configure(config: "pytest.Config") -> None:
    if not config.getoption("--no-cuwhy") and not under_run():
        config.pluginmanager.register(_Explainer(config.getoption("--cuwhy-timeout")), "cuwhy-explainer")


class _Explainer:
    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.broken_by: Optional[str] = None
        self.code: Optional[int] = None

    def _text(self, verdict: Verdict, test: str) -> str:
        if not verdict.sticky or verdict.error is None:
            return str(verdict)
        if self.broken_by is not None and verdict.error.code == self.code:
            return (f"CUDA error {self.code} again, first raised by {self.broken_by}: after it no CUDA call works in "
                    "this process.\nThis test may have nothing to do with it; run it alone.\n")
        self.broken_by, self.code = test, verdict.error.code
        return str(verdict)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: "pytest.Item", call: Any) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        if call.excinfo is None or not report.failed:
            return
        verdict = verdict_of(call.excinfo.value, self.timeout)
        if verdict is not None:
            report.sections.append((_TITLE, self._text(verdict, item.nodeid)))
            item.user_properties.append(("cuwhy.cause", verdict.cause))
