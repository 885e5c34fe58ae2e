#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs by strangers that do not fit: does the size run that the verdict names, and does one more fail?

    tests/torch/sizes.py [--build build] [-j N] [--card 8] [--folder FOLDER] [name…]

FOLDER/options.json: {file: {"option": "--batch-size", "default": N}}. A verdict that names no size names the `cuwhy fit --vary` that finds it,
or a percentage: then `cuwhy fit --vary` is asked. Status 1: a size that was named did not run, or was not the largest.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check  # noqa: E402

LIMIT = 400


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def cuwhy(self, *words):
        return subprocess.run([os.path.join(self.args.build, "cuwhy"), *words], capture_output=True, text=True, timeout=LIMIT, check=False)

    def run(self, file, option, size):
        """Its exit status, and the verdict."""
        out = tempfile.mkdtemp(dir=self.folder)
        done = self.cuwhy("run", "--gpu", "sim:h200,memory=%gG" % self.args.card, "--out", out, "-f", "--",
                          sys.executable, os.path.join(self.args.folder, file), option, str(size))
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
            return done.returncode, json.load(stream)

    def vary(self, file, option, default):
        done = self.cuwhy("fit", "--json", "--no-remedies", "--gpu", "%dMiB" % (self.args.card * 1024), "--vary",
                          "%s=1..%d" % (option.lstrip("-"), default), "--", sys.executable, os.path.join(self.args.folder, file))
        cards = json.loads(done.stdout).get("vary", {}).get("cards") or [{}]
        return cards[0].get("largest"), cards[0].get("dry_runs")

    def follow(self, file, option, default):
        """(right, what was said and what came of it)"""
        try:
            return self.followed(file, option, default)
        except subprocess.TimeoutExpired as e:
            return False, "no size in %d s: cuwhy %s" % (LIMIT, e.cmd[1])

    def followed(self, file, option, default):
        status, verdict = self.run(file, option, default)
        if status == 0:
            return None, "fits with %d" % default
        fits = verdict.get("memory", {}).get("fits") or {}
        size, how = fits.get("size"), "named"
        if not size:
            (size, n), how = self.vary(file, option, default), "found by fit --vary (verdict: %s, %s %%)" % (verdict["cause"], fits.get("percent"))
            how += ", %s dry runs" % n
        if not size:
            return False, "no size: %s, %s" % (verdict["cause"], how)
        runs, more = (self.run(file, option, n)[0] == 0 for n in (size, size + 1))
        return runs and not more, "%d of %d, %s: %s, one more %s" % (size, default, how, "runs" if runs else "FAILS", "RUNS" if more else "fails")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("--card", type=float, default=8, help="GiB")
    parser.add_argument("--folder", default=os.path.join(HERE, "sizes"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = check.install("2.11.0")[0]
    with open(os.path.join(args.folder, "options.json"), encoding="utf-8") as stream:
        rows = [(f, o["option"], o["default"]) for f, o in sorted(json.load(stream).items()) if not args.names or any(n in f for n in args.names)]
    good = bad = 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-sizes-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        bench = Bench(args, folder)
        for row, (right, text) in zip(rows, pool.map(lambda r: bench.follow(*r), rows)):
            good, bad = good + (right is True), bad + (right is False)
            print("%s %-24s %s" % ("ok    " if right else "not ok" if right is False else "none  ", row[0], text), flush=True)
    print("%d of %d right" % (good, good + bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
