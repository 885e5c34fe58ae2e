# SPDX-License-Identifier: Apache-2.0
"""Statistics for the benchmarks: medians, tails, and how reliable they are."""
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


def bootstrap_ratio(on, off, rounds=2000, seed=1):
    """Ratio of medians of paired blocks, and the range that holds 95 % of resampled ratios."""
    rng, n = random.Random(seed), min(len(on), len(off))
    ratios = []
    for _ in range(rounds):
        picks = [rng.randrange(n) for _ in range(n)]
        ratios.append(median([on[i] for i in picks]) / median([off[i] for i in picks]))
    ratios.sort()
    return median(on) / median(off), quantile(ratios, 0.025), quantile(ratios, 0.975)


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
