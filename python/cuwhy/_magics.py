# SPDX-License-Identifier: Apache-2.0
"""`%load_ext cuwhy`: `%%cuwhy` and `%%memory` for the cells of a notebook.

    %%cuwhy            runs the cell; a CUDA error is followed by its verdict, with the lines that held memory
    %cuwhy             the verdict on the last error
    %%memory           runs the cell, and says how much GPU memory it needed, and which lines
    %memory            what PyTorch's tensors hold now"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ._explain import TIMEOUT, explain, is_cuda_error
from ._hooks import mark, remembered, show
from ._program import CuwhyError, Deadline, under_run
from ._usage import Measure, Used, table, words_of
from ._verdict import Verdict
from ._watch import watch


class CellFailed(Exception):
    """The cell's own error was shown already. A notebook stops here as after any other error, and shows nothing twice."""

    def _render_traceback_(self) -> List[str]:
        return []


def _run(shell: Any, cell: str) -> None:
    """As the notebook would run it: its output, its result, its error."""
    result = shell.run_cell(cell, store_history=False)
    error = result.error_in_exec or result.error_before_exec
    if error is not None:
        raise error


def _fail(error: BaseException) -> CellFailed:
    failed = CellFailed(str(error))
    mark(failed, remembered(error))
    failed.__cause__ = error
    return failed


def _of_recorder(error: BaseException) -> Optional[Verdict]:
    """`cuwhy run` explains the errors of a program when it ends, and a notebook does not end."""
    if not under_run() or not is_cuda_error(error):
        return None
    try:
        verdict = explain(error)
    except CuwhyError:
        return None
    mark(error, verdict)
    return verdict if verdict.found else None


def _explained(shell: Any, line: str, cell: str) -> None:
    if line.strip():
        raise ValueError("%%cuwhy takes no arguments")
    shown = False
    watched = watch(quiet=True, memory_history=True)
    try:
        with watched:
            try:
                _run(shell, cell)
            except Exception as error:
                shown = remembered(error) is not None  # by `enable`
                raise
    except Exception as error:
        if not shown:
            show(watched.verdict or _of_recorder(error))
        raise _fail(error) from error


def _last(shell: Any, line: str) -> Any:
    try:
        return explain(collect=True)
    except CuwhyError as e:
        print(f"cuwhy: {e}")
        return None


def _words(u: Used) -> str:
    return (f"GPU {u.device}: the cell needed {words_of(u.added)}, and keeps {words_of(u.after - u.before)} "
            f"(tensors before: {words_of(u.before)}, at the peak: {words_of(u.peak)}, now: {words_of(u.after)})")


def _tell(measure: Measure, deadline: Deadline) -> None:
    used = [u for u in measure.used() if u.peak or u.after]
    if not used:
        print("cuwhy: PyTorch has used no GPU memory")
    for u in used:
        lines = measure.lines(u.device, deadline) if u.added else []
        print(f"{_words(u)}\n{table(lines)}", end="")


def _measured(shell: Any, line: str, cell: str) -> None:
    if line.strip():
        raise ValueError("%%memory takes no arguments")
    measure = Measure()
    measure.begin()
    try:
        _run(shell, cell)
    except Exception as error:
        raise _fail(error) from error
    finally:
        _tell(measure, Deadline(TIMEOUT))
        measure.end()


def _now(shell: Any, line: str) -> None:
    used = Measure().used()
    for u in used:
        print(f"GPU {u.device}: {words_of(u.after)} in tensors, at most {words_of(u.peak)}")
    if not used:
        print("cuwhy: PyTorch has used no GPU memory")


def _bound(shell: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: function(shell, *args)


_LINES: Dict[str, Callable[..., Any]] = {"cuwhy": _last, "memory": _now}
_CELLS: Dict[str, Callable[..., Any]] = {"cuwhy": _explained, "memory": _measured}


def load(shell: Any) -> None:
    for kind, functions in (("line", _LINES), ("cell", _CELLS)):
        for name, function in functions.items():
            shell.register_magic_function(_bound(shell, function), kind, name)


def unload(shell: Any) -> None:
    for kind, functions in (("line", _LINES), ("cell", _CELLS)):
        for name in functions:
            shell.magics_manager.magics[kind].pop(name, None)
