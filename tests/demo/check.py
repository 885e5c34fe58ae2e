#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo, with the stand-in for PyTorch: check.py BUILD. It names the right lines, ends well, is quick, and leaves its page."""
import os
import re
import resource
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS_MAX = 60
failures, passed = [], 0


def claim(name, ok, *why):
    global passed
    if ok:
        passed += 1
    else:
        failures.append(name)
        print("not ok - %s\n    %s" % (name, " ".join(str(w)[-2000:] for w in why)))


def line_of(program, words):
    with open(os.path.join(ROOT, "examples", program), encoding="utf-8") as f:
        found = [n for n, line in enumerate(f, 1) if words in line]
    assert len(found) == 1, (program, words, found)
    return "%s:%d" % (program, found[0])


def main():
    build = os.path.abspath(sys.argv[1])
    env = dict(os.environ, COLUMNS="100", CUWHY_DEMO="stand-in")
    done = subprocess.run(["sh", os.path.join(ROOT, "examples", "demo.sh"), build], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, env=env, timeout=600)
    # of the processor: a machine that is busy with other work is no failure
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = used.ru_utime + used.ru_stime
    parts = re.split(r"^\d\. ", done.stdout, flags=re.M)
    claim("the demo ends well", done.returncode == 0, done.returncode, done.stdout)
    claim("it shows three things", len(parts) == 4, done.stdout)
    claim("it is quick", took < SECONDS_MAX, took)
    if len(parts) == 4:
        _, late, full, fit = parts
        claim("the late access is traced to its launch", "WHERE  " + line_of("gather.py", "row_kernels.copy_rows(") in late, late)
        claim("and to the tensor", "it was allocated at " + line_of("gather.py", "table = torch.zeros") in late, late)
        claim("and the line that noticed is told", "Python's traceback says " + line_of("gather.py", "synchronize()") in late, late)
        claim("the evaluation is blamed for what it keeps",
              "cause oom-eval-without-no-grad" in full and "WHERE  " + line_of("evaluate.py", "scores.append") in full, full)
        claim("there is what would have fit", "  FITS   would have fit without" in full, full)
        claim("a dry run's card has no size", "simulated, without a limit" in fit and "TiB" not in fit, fit)
        claim("played back, the stand-in allocates as PyTorch does", "played back: all got the same addresses" in fit, fit)
        claim("a small card is too small, a large one is not", re.search(r"rtx3060 .* no ", fit) and re.search(r"rtx4090 .* so far ", fit), fit)
        page = re.search(r"^    (/.*\.html)$", fit, re.M)
        claim("the page is there", page and os.path.getsize(page.group(1)) > 100000, fit)
    print("demo: %d passed, %d failed (%d s)" % (passed, len(failures), took))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
