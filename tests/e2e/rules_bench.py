# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of a real GPU run to their end; with a PyTorch that computes nothing, their figures mean nothing."""
import os

from toolbox import same

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "bench")


def bench(box, name, *words):
    run = box.plain([box.python, "-B", os.path.join(BENCH, name), "--build", box.build] + list(words), timeout=240,
                    PYTHONPATH=os.path.join(HERE, "fake_torch"))
    same(run.status, 0, run.err[-600:])
    return run.out


def rule__figures_from_outside_come_first_with_their_goals(box):
    out = bench(box, "bench_gpu.py", "--part", "outside", "--seconds", "0")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("| ")]
    same(rows[0], ["block", "goal", "cuwhy", "without"], "columns")
    same([row[:2] for row in rows[2:]], [["launches", "+2 %"], ["allocating", "+3 %"], ["items", "+2 %"], ["tiny step", "+3 %"],
                                         ["small step", "+0.5 %"], ["start and exit", "+50 ms"]], "blocks and goals")


def rule__the_cost_can_be_split_into_parts(box):
    out = bench(box, "bench_outside.py", "--parts", "--pairs", "1", "items")
    columns = next(line for line in out.splitlines() if line.startswith("| block"))
    for part in ("no dumps", "no lines", "library"):
        assert part in columns, columns
    assert "'paused' was not paused" in out, "here nothing is recorded, so that there was nothing to pause: " + out


def rule__without_a_gpu_the_benchmarks_are_skipped(box):
    run = box.plain([box.python, "-B", os.path.join(BENCH, "bench_gpu.py"), "--build", box.build], PYTHONPATH=box.scratch)
    same((run.status, run.out), (0, "bench-gpu: skipped, no device or no PyTorch\n"), "status and output")
