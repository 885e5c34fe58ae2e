# SPDX-License-Identifier: Apache-2.0
"""Cost of one recorded call on the simulated GPU, at several depths of the Python stack.

Runs under `cuwhy run --gpu sim:h200` (see run.sh). Recording is paused and resumed in alternating
blocks of the same process, so that both see the same machine; the difference is the cost.
"""
import _thread
import ctypes
import os
import queue
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e", "site-packages")]
import cudrv  # noqa: E402
import meter  # noqa: E402
import stats  # noqa: E402

BLOCKS = int(os.environ.get("BENCH_BLOCKS", "500"))     # of each kind
LINES = 8


def frames(n, function, args):
    """Calls the function with exactly this many Python frames above the caller's."""
    return function(*args) if n == 1 else frames(n - 1, function, args)


def worker(context, inbox, outbox):
    """The bottom frame of a separate thread, so that the stack depth is exact."""
    cudrv.call("cuCtxSetCurrent", context)
    while True:
        depth, function, args = inbox.get()
        outbox.put(function(*args) if depth < 2 else frames(depth - 1, function, args))


class Depths:
    """Runs calls at a chosen depth and waits for them."""

    def __init__(self, context):
        self.inbox, self.outbox = queue.SimpleQueue(), queue.SimpleQueue()
        _thread.start_new_thread(worker, (context, self.inbox, self.outbox))

    def __call__(self, depth, function, *args):
        self.inbox.put((depth, function, args))
        return self.outbox.get()


def many_lines(library):
    """A function that launches from several lines in turn, so that no two consecutive stacks are equal."""
    calls = "".join("        one(bench)\n" for _ in range(LINES))
    source = "def run(bench, n):\n    for _ in range(n // %d):\n%s" % (LINES, calls)
    names = {"one": library.bench_one}
    exec(compile(source, "several_lines.py", "exec"), names)
    return names["run"]


def many_functions(library):
    """A function that launches from three new frames each time, as the modules of a model do."""
    source = "".join("def f{0}(bench):\n    one(bench)\ndef g{0}(bench):\n    f{0}(bench)\ndef h{0}(bench):\n    g{0}(bench)\n".format(n)
                     for n in range(LINES))
    calls = "".join("        h%d(bench)\n" % n for n in range(LINES))
    names = {"one": library.bench_one}
    exec(compile(source + "def run(bench, n):\n    for _ in range(n // %d):\n%s" % (LINES, calls), "several_functions.py", "exec"), names)
    return names["run"]


def main(path):
    library = meter.load(path)
    context = cudrv.init()
    at_depth = Depths(context)
    gauge = meter.Meter(library, cudrv.cuda, cudrv.kernel("nop"), context, cudrv.synchronize,
                        BLOCKS)
    rows = []

    def add(name, depth, function, step):
        on, off = gauge.measure(
            lambda bench: at_depth(depth, function, ctypes.byref(bench), meter.BLOCK))
        steps = step and gauge.steps(lambda bench: at_depth(depth, step, ctypes.byref(bench)))
        rows.append(meter.row(name, on, off, steps))

    add("launch, no Python frames", 1, library.bench_launches_no_python,
        library.bench_steps_no_python)
    for depth in (1, 5, 20, 60):
        add("launch, %d Python frame%s" % (depth, "s" if depth > 1 else ""), depth,
            library.bench_launches, library.bench_steps_launch)
    add("launch, 20 Python frames, %d lines in turn" % LINES, 19, many_lines(library),
        library.bench_steps_launch)
    add("launch, 20 Python frames, 3 of them others each time", 16, many_functions(library), None)
    add("allocation and free, 5 Python frames", 5, library.bench_pairs, library.bench_steps_pair)
    add("copy of 512 bytes to the GPU, 5 Python frames", 5, library.bench_copies_small, None)
    add("copy of 64 KiB to the GPU, 5 Python frames", 5, library.bench_copies_large, None)
    for depth in (1, 20):
        add("PyTorch block given out and another taken back, %d Python frame%s" % (depth, "s" if depth > 1 else ""),
            depth, library.bench_blocks, library.bench_steps_block)
    print("%s, Python %s, %d calls of each kind per row; recording on / paused\n" % (
        stats.processor(), sys.version.split()[0], meter.BLOCK * BLOCKS))
    stats.table(meter.HEAD, rows)


main(sys.argv[1])
