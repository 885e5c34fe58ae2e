# SPDX-License-Identifier: Apache-2.0
"""What starting a process costs: the recorder alone in processes that never load CUDA, and all of `cuwhy run`.

    bench_start.py BUILD [rounds]

The process on the simulated GPU launches a kernel, waits for it and ends. Each row is the same command in turn with and
without. The processor time, cuwhy's own included, depends little on what else the machine does.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import stats  # noqa: E402

CUDA = """
import sys
sys.path.insert(0, %r)
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (1,))
cudrv.synchronize()
""" % os.path.join(HERE, "..", "e2e", "site-packages")


def once(argv, env):
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], argv, env)
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter_ns() - begin
    if status:
        sys.exit("bench_start: %s ended with %d" % (argv[0], status))
    return took / 1e6, 1000 * (used.ru_utime + used.ru_stime)


def in_turn(name, without, with_it, rounds):
    """Each a command and its environment."""
    times = ([], [])
    for number in range(2 * rounds + 8):
        kind = (number + number // 2) % 2
        took = once(*(with_it if kind else without))
        if number >= 8:
            times[kind].append(took)
    (off, off_used), (on, on_used) = (list(zip(*kind)) for kind in times)
    return (name, "%.2f" % (stats.median(on) - stats.median(off)), "%.2f" % (stats.median(on_used) - stats.median(off_used)),
            stats.spread(on), stats.spread(off), rounds)


def main(build, rounds):
    plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    loaded = dict(plain, LD_PRELOAD=os.path.join(build, "libcuwhy-rec.so"), CUWHY_SOCK="/nonexistent/s")
    simulated = dict(plain, LD_LIBRARY_PATH=os.path.join(build, "sim"), CUWHY_SIM="h200")
    cuwhy, python = [os.path.join(build, "cuwhy"), "run"], os.path.realpath(sys.executable)
    true, nothing, cuda = ["/bin/true"], [python, "-S", "-c", "pass"], [python, "-S", "-c", CUDA]
    rows = [in_turn("recorder: /bin/true", (true, plain), (true, loaded), rounds),
            in_turn("recorder: python3 -c pass", (nothing, plain), (nothing, loaded), rounds // 3),
            in_turn("cuwhy run: /bin/true", (true, plain), (cuwhy + ["--"] + true, plain), rounds // 6),
            in_turn("cuwhy run: python3 -c pass", (nothing, plain), (cuwhy + ["--"] + nothing, plain), rounds // 6),
            in_turn("cuwhy run: a kernel", (cuda, simulated), (cuwhy + ["--gpu", "sim:h200", "--"] + cuda, plain), rounds // 12)]
    stats.table(("process", "cost, ms", "processor time, ms", "with, ms", "without, ms", "runs"), rows)


main(os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 600)
