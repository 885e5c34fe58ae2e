#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuwhy.fits against the largest batch that runs: how often it takes, and how near it ends.

    tests/torch/fits_batch.py [--build build] --torch FOLDER[:FOLDER] [--gib 24] [--times 2] TRUTH.jsonl [name…]

TRUTH.jsonl is what `boundary.py search` printed. Each program of programs_boundary.py begins with --times the largest batch and goes on
with what cuwhy.fits says, until it runs. One line each; not part of a check, as it takes minutes.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
TRIES = 10


def one(name, batch):
    sys.path[:0] = [os.path.join(ROOT, "python"), HERE]
    import cuwhy
    import programs_boundary
    import torch
    programs_boundary.STEPS = 2
    tried = []
    while batch and len(tried) < TRIES:
        tried.append(batch)
        try:
            programs_boundary.PROGRAMS[name](batch)
            torch.cuda.synchronize()
            break
        except torch.OutOfMemoryError as e:
            found = cuwhy.fits(e, batch=batch)
        except RuntimeError as e:
            if "ALLOC_FAILED" not in str(e):
                raise
            found = None        # a library's own words have no numbers
        torch.cuda.empty_cache()
        batch = batch * 9 // 10 if found is None else int(found)
    else:
        batch = 0
    print(json.dumps({"ran": batch, "tried": tried}), flush=True)


def main():
    if sys.argv[1:2] == ["one"]:
        return one(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--torch", required=True)
    parser.add_argument("--gib", type=int, default=24)
    parser.add_argument("--times", type=float, default=2.0)
    parser.add_argument("truth")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.build, "cuwhy"))
    with open(options.truth, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.startswith("{")]
    for row in rows:
        if row["gib"] != options.gib or options.names and row["program"] not in options.names:
            continue
        done = subprocess.run([program, "run", "--gpu", "sim:h200,memory=%dG" % options.gib, "--", sys.executable, os.path.abspath(__file__), "one",
                               row["program"], str(int(row["fits"] * options.times))], capture_output=True, text=True, check=False,
                              env=dict(os.environ, PYTHONPATH=options.torch, CUWHY_PROGRAM=program))
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"ran"')]
        ran = found[0]["ran"] if found else 0
        print("%-16s largest %4d   ran %4d   %3.0f %%   tried %s" % (row["program"], row["fits"], ran, 100 * ran / row["fits"],
                                                                 found[0]["tried"] if found else done.stderr[-200:]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
