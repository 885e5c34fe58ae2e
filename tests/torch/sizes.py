#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs by strangers that do not fit: does the size run that the verdict names, and does one more fail?

    tests/torch/sizes.py [--build build] [-j N] [--card 8] [--folder FOLDER] [--json FILE] [name…]
    tests/torch/sizes.py --real --from FILE [-j N] [name…]      the sizes of such a FILE, on this machine's GPU, made as small (smaller_card.py)
    tests/torch/sizes.py --rehearse --from FILE [name…]         the same without a GPU

FOLDER/options.json: {file: {"option": "--batch-size", "default": N}}. A verdict that names no size names the `cuwhy fit --vary` that finds it,
or a percentage: then `cuwhy fit --vary` is asked. Status 1: a size that was named did not run, or was not the largest.

With --real, a new process has exactly as much free as on the simulated card, to the byte; how much the two differ without that is printed. What the
programs take besides, on top of the context (kernels' code, workspaces), is the driver's and NVIDIA's libraries' own. If a size misses, 1 % and 5 % beside it are tried.
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
import memory  # noqa: E402
import smaller_card  # noqa: E402

LIMIT = 1800    # seconds, of the longest search on a busy machine


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
        """(right, what was said and what came of it, the size)"""
        try:
            return self.followed(file, option, default)
        except subprocess.TimeoutExpired as e:
            return False, "no size in %d s: cuwhy %s" % (LIMIT, e.cmd[1]), None

    def followed(self, file, option, default):
        status, verdict = self.run(file, option, default)
        if status == 0:
            return None, "fits with %d" % default, None
        fits = verdict.get("memory", {}).get("fits") or {}
        size, how = fits.get("size"), "named"
        if not size:
            (size, n), how = self.vary(file, option, default), "found by fit --vary (verdict: %s, %s %%)" % (verdict["cause"], fits.get("percent"))
            how += ", %s dry runs" % n
        if not size:
            return False, "no size: %s, %s" % (verdict["cause"], how), None
        runs, more = (self.run(file, option, n)[0] == 0 for n in (size, size + 1))
        return runs and not more, "%d of %d, %s: %s, one more %s" % (size, default, how, "runs" if runs else "FAILS", "RUNS" if more else "fails"), size

    def free(self):
        """What a new process has on the simulated card."""
        done = self.cuwhy("run", "--gpu", "sim:h200,memory=%gG" % self.args.card, "--", sys.executable, "-c", smaller_card.FREE)
        return int(done.stdout.split()[-2])


class RealBench:
    """The same sizes on a real card."""

    def __init__(self, args, card, found):
        self.args, self.card, self.total = args, card, int(found["card"] * smaller_card.GIB)
        print("a new process has %+.1f MiB of what it has on the simulated card; from here on, the same" %
              (card.equal(self.total, found["free"]) / 2 ** 20), flush=True)

    def runs(self, file, option, size):
        done = self.card.run(self.total, [sys.executable, os.path.join(self.args.folder, file), option, str(size)])
        if done.returncode and not memory.NO_MEMORY.search(done.stderr):
            raise RuntimeError("%s %s: %s" % (file, size, done.stderr[-2000:]))
        return done.returncode == 0

    def near(self, file, option, size, runs):
        """How far from it the size is that does as it should."""
        for percent in (1, 5):
            other = size - max(1, size * percent // 100) if not runs else size + max(1, size * percent // 100)
            if self.runs(file, option, other) != runs:
                return ", %d %s: within %d %%" % (other, "fails" if runs else "runs", percent)
        return ", nor is it within 5 %"

    def follow(self, file, option, size):
        try:
            runs, more = (self.runs(file, option, n) for n in (size, size + 1))
            text = "%d %s, one more %s" % (size, "runs" if runs else "FAILS", "RUNS" if more else "fails")
            if runs and not more:
                return True, text, size
            return False, text + self.near(file, option, size, runs), size
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return False, str(error), size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("--card", type=float, default=8, help="GiB")
    parser.add_argument("--folder", default=os.path.join(HERE, "sizes"))
    parser.add_argument("--json", help="write the sizes to this file, for --real")
    parser.add_argument("--from", dest="found", help="with --real, --rehearse: such a file")
    smaller_card.add_arguments(parser)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not smaller_card.set_torch(args):
        return 0
    with open(os.path.join(args.folder, "options.json"), encoding="utf-8") as stream:
        options = json.load(stream)
    with tempfile.TemporaryDirectory(prefix="cuwhy-sizes-") as folder:
        if args.real or args.rehearse:
            with open(args.found, encoding="utf-8") as stream:
                found = json.load(stream)
            bench = RealBench(args, smaller_card.Card(args.build, args.rehearse, folder), found)
            asked = found["sizes"]
        else:
            bench, asked = Bench(args, folder), {file: o["default"] for file, o in options.items()}
            found = {"card": args.card, "free": bench.free(), "sizes": {}}
        rows = [(f, options[f]["option"], n) for f, n in sorted(asked.items()) if not args.names or any(name in f for name in args.names)]
        good = bad = 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for row, (right, text, size) in zip(rows, pool.map(lambda r: bench.follow(*r), rows)):
                good, bad = good + (right is True), bad + (right is False)
                print("%s %-24s %s" % ("ok    " if right else "not ok" if right is False else "none  ", row[0], text), flush=True)
                if right:
                    found["sizes"][row[0]] = size
    print("%d of %d right" % (good, good + bad))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as stream:
            json.dump(found, stream, indent=1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
