# SPDX-License-Identifier: Apache-2.0
"""Startup cost in processes that never load CUDA: the same command with and without the recorder.

    bench_start.py RECORDER [rounds]
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import stats  # noqa: E402


def once(argv, env):
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], argv, env)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter_ns() - begin
    if status:
        sys.exit("bench_start: %s ended with %d" % (argv[0], status))
    return took / 1e6


def main(recorder, rounds):
    plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    loaded = dict(plain, LD_PRELOAD=os.path.abspath(recorder), CUWHY_SOCK="/nonexistent/s")
    python = os.path.realpath(sys.executable)
    rows = []
    for name, argv, n in (("/bin/true", ["/bin/true"], rounds),
                          ("python3 -c pass", [python, "-S", "-c", "pass"], rounds // 3)):
        times = {0: [], 1: []}
        for number in range(2 * n + 8):
            kind = (number + number // 2) % 2
            took = once(argv, loaded if kind else plain)
            if number >= 8:
                times[kind].append(took)
        cost = stats.median(times[1]) - stats.median(times[0])
        rows.append((name, "%.3f" % cost, stats.spread(times[1]), stats.spread(times[0]), n))
    stats.table(("process", "cost, ms", "with the recorder, ms", "without, ms", "runs"), rows)


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 600)
