# SPDX-License-Identifier: Apache-2.0
"""Statistics for the benchmarks: medians, tails, and how reliable they are."""
import operator
import platform
import random


def quantile(ordered, share):
    """`ordered` is sorted; share 0.5 is the median."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values):
    return quantile(sorted(values), 0.5)


def spread(values):
    """Median and the middle half, as text."""
    ordered = sorted(values)
    return "%.3g (%.3g to %.3g)" % tuple(quantile(ordered, s) for s in (0.5, 0.25, 0.75))


def bootstrap(compare, on, off, rounds=2000, seed=1):
    """Compares the medians of paired blocks; with the range that holds 95 % of what resampled pairs give."""
    rng, n = random.Random(seed), min(len(on), len(off))
    found = []
    for _ in range(rounds):
        picks = [rng.randrange(n) for _ in range(n)]
        found.append(compare(median([on[i] for i in picks]), median([off[i] for i in picks])))
    found.sort()
    return compare(median(on), median(off)), quantile(found, 0.025), quantile(found, 0.975)


def bootstrap_median(values, rounds=2000, seed=1):
    """The median, with the range that holds 95 % of the medians of resampled values."""
    rng, n = random.Random(seed), len(values)
    found = sorted(median([values[rng.randrange(n)] for _ in range(n)]) for _ in range(rounds))
    return median(values), quantile(found, 0.025), quantile(found, 0.975)


def bootstrap_ratio(on, off, rounds=2000):
    return bootstrap(operator.truediv, on, off, rounds)


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)
