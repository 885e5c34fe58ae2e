# SPDX-License-Identifier: Apache-2.0
"""pytest: the verdict in the report of a test that failed with a CUDA error, and a limit on the GPU memory of a test.

A sticky error breaks CUDA for the rest of the process: later tests fail with the same error, and their reports name
the test that caused it.

    @pytest.mark.limit_gpu_memory("2 GB")

fails a test whose tensors need more than that, fixtures that it sets up included, and names the lines. On a simulated GPU, too:
`cuwhy run --gpu sim:a100-40gb pytest`."""

from __future__ import annotations

import warnings
from typing import Any, Generator, Optional

import pytest

from ._hooks import verdict_of
from ._program import Deadline, under_run
from ._usage import Measure, Used, size_of, table, words_of
from ._verdict import Verdict

_TITLE = "cuwhy"


def pytest_addoption(parser: "pytest.Parser") -> None:
    group = parser.getgroup("cuwhy")
    group.addoption("--no-cuwhy", action="store_true", help="do not explain CUDA errors of failing tests")
    group.addoption("--cuwhy-timeout", type=float, default=10.0, metavar="SECONDS",
                    help="how long the explanation of one failing test may take (10)")


def pytest_configure(config: "pytest.Config") -> None:
    config.addinivalue_line("markers", "limit_gpu_memory(size): the test fails if its tensors need more than this on any GPU: "
                                       "\"2 GB\", \"512 MiB\"")
    config.pluginmanager.register(_Limiter(config.getoption("--cuwhy-timeout")), "cuwhy-limiter")
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


class _Limiter:
    """One test at a time."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.measure: Optional[Measure] = None

    def _limit(self, item: "pytest.Item") -> Optional[int]:
        marker = item.get_closest_marker("limit_gpu_memory")
        if marker is None:
            return None
        if len(marker.args) != 1 or marker.kwargs:
            raise pytest.UsageError(f"{item.nodeid}: limit_gpu_memory takes one size, for example \"2 GB\"")
        try:
            return size_of(marker.args[0])
        except ValueError as e:
            raise pytest.UsageError(f"{item.nodeid}: limit_gpu_memory: {e}") from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: "pytest.Item") -> None:
        if self._limit(item) is not None:
            self.measure = Measure()
            self.measure.begin()

    def _worst(self) -> Optional[Used]:
        used = self.measure.used() if self.measure is not None else []
        return max(used, key=lambda u: u.added) if used else None

    def _told(self, worst: Used, limit: int) -> str:
        lines = self.measure.lines(worst.device, Deadline(self.timeout)) if self.measure is not None else []
        held = f"\nwhat held memory at the peak, {words_of(worst.peak)} in all:\n{table(lines)}" if lines else \
            "\nthe lines are not known: PyTorch was loaded by the test itself\n"
        return (f"the test needed {words_of(worst.added)} of memory on GPU {worst.device}, and the limit is {words_of(limit)}"
                f"{f' (not counted: {words_of(worst.before)} that earlier tests left)' if worst.before else ''}{held}")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: "pytest.Item", call: Any) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        if self.measure is None or report.when == "setup" and report.passed:
            return
        if report.when == "call" and report.passed:
            self._check(item, report)
        self.measure.end()
        self.measure = None

    def _check(self, item: "pytest.Item", report: Any) -> None:
        limit, worst = self._limit(item), self._worst()
        if limit is None:
            return
        if worst is None:
            warnings.warn(pytest.PytestWarning(f"{item.nodeid}: limit_gpu_memory was not checked: PyTorch used no GPU"), stacklevel=1)
        elif worst.added > limit:
            report.outcome = "failed"
            report.longrepr = self._told(worst, limit)
            item.user_properties.append(("cuwhy.gpu_memory", worst.added))
