#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The batch that cuwhy names after out of memory, followed: it must run, and the next larger one must not.

    tests/torch/advice.py [--build build] --python PYTHON [--count 20] [--seed 1] [--models mlp,conv,…] [--json FILE]

Makes programs at random (models, optimizers, precision, cards) whose batch is their first argument, and runs each on a simulated card with batches
that do not fit: one more than the largest, an eighth more, twice as many. PYTHON has PyTorch. Minutes; not part of a check.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")

MODELS = {
    "mlp": ("nn.Sequential(*[l for _ in range({depth}) for l in (nn.Linear({width}, {width}), nn.GELU())], nn.Linear({width}, 10))",
            "torch.randn(batch, {width}, device='cuda')"),
    "conv": ("nn.Sequential(nn.Conv2d(3, {channels}, 3, padding=1), *[l for _ in range({depth}) for l in (nn.Conv2d({channels}, {channels}, 3,"
             " padding=1), nn.BatchNorm2d({channels}), nn.ReLU())], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear({channels}, 10))",
             "torch.randn(batch, 3, 64, 64, device='cuda')"),
    "encoder": ("nn.Sequential(nn.Embedding(20000, {width}), nn.TransformerEncoder(nn.TransformerEncoderLayer({width}, 8, 4 * {width},"
                " batch_first=True), {depth}, enable_nested_tensor=False), Mean(), nn.Linear({width}, 10))",
                "torch.randint(20000, (batch, {length}), device='cuda')"),
    "lstm": ("nn.Sequential(nn.LSTM({width}, {width}, 2, batch_first=True), First(), Mean(), nn.Linear({width}, 10))",
             "torch.randn(batch, {length}, {width}, device='cuda')"),
}
OPTIMIZERS = ["SGD(model.parameters(), lr=1e-3)", "SGD(model.parameters(), lr=1e-3, momentum=0.9)", "AdamW(model.parameters(), lr=1e-3)",
              "RMSprop(model.parameters(), lr=1e-3)", "AdamW(model.parameters(), lr=1e-3, foreach=False)"]
PROGRAM = """import sys
import torch
from torch import nn


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


class First(nn.Module):
    def forward(self, x):
        return x[0]


def main():
    batch = int(sys.argv[1])
    model = {model}.cuda()
    optimizer = torch.optim.{optimizer}
    for step in range(4):
        x = {data}
        y = torch.zeros(batch, dtype=torch.long, device="cuda")
        {before}
        with torch.autocast("cuda", torch.bfloat16, enabled={autocast}):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        {after}


main()
"""


def make(dice, models):
    kind = dice.choice(models)
    sizes = {"depth": dice.randint(2, 12), "width": 64 * dice.randint(4, 32), "channels": 8 * dice.randint(2, 12),
             "length": dice.choice([32, 100, 128, 200])}
    model, data = (text.format(**sizes) for text in MODELS[kind])
    first = dice.random() < 0.5
    zero = "optimizer.zero_grad()"
    choice = {"model": model, "data": data, "optimizer": dice.choice(OPTIMIZERS), "autocast": dice.random() < 0.3,
              "before": zero if first else "pass", "after": "pass" if first else zero}
    return kind, dice.choice([1, 2, 3, 4, 6]), PROGRAM.format(**choice), choice


def attempts(path, sizes):
    """In the simulated process: the program with each size, in a process of its own; prints those that ran. With "..": the largest, by halves."""
    import runpy
    import torch    # noqa: F401  once for all

    def runs(size):
        pid = os.fork()
        if pid == 0:
            sys.argv[:] = [path, str(size)]
            sys.stderr = open(os.devnull, "w", encoding="utf-8")
            status = 1
            try:
                runpy.run_path(path, run_name="__main__")
                status = 0
            except torch.OutOfMemoryError:
                pass
            except Exception:
                status = 2
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status if status else True
    if sizes != [".."]:
        print("RAN " + json.dumps([s for s in map(int, sizes) if runs(s) is True]), flush=True)
        return
    good, bad = 0, 32
    while runs(bad) is True and bad < 1 << 20:
        good, bad = bad, 4 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if runs(middle) is True else (good, middle)
    print("RAN " + json.dumps(good), flush=True)


class Runs:
    def __init__(self, build, python, gib):
        self.program, self.python, self.gpu = os.path.abspath(os.path.join(build, "cuwhy")), python, "sim:h200,memory=%dG" % gib

    def try_sizes(self, path, *sizes):
        done = subprocess.run([self.program, "run", "--gpu", self.gpu, "--out", path + ".try", "--", self.python, os.path.abspath(__file__), "attempts", path,
                               *map(str, sizes)], capture_output=True, text=True, check=False)
        subprocess.run(["rm", "-rf", path + ".try"], check=True)
        ran = [line for line in done.stdout.splitlines() if line.startswith("RAN ")]
        return json.loads(ran[-1][4:]) if ran else None

    def verdict(self, path, size):
        out = path + ".out"
        subprocess.run(["rm", "-rf", out], check=True)
        subprocess.run([self.program, "run", "--gpu", self.gpu, "--out", out, "--", self.python, path, str(size)], capture_output=True, check=False)
        done = subprocess.run([self.program, "explain", "--json", out], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)


def advised(verdict, size):
    """What the verdict names: the size, and how; None: it says that it is not known."""
    fits = (verdict.get("memory") or {}).get("fits") or {}
    if fits.get("size") is not None:
        return fits["size"], "size"
    if fits.get("percent") is not None:
        return size * fits["percent"] // 100, "%d %%" % fits["percent"]
    return None, "below %s %%" % fits["below"] if fits.get("below") is not None else "nothing"


def main():
    if sys.argv[1:2] == ["attempts"]:
        return attempts(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--python", required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", default=",".join(sorted(MODELS)))
    parser.add_argument("--json")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.count):
            kind, gib, text, choice = make(dice, options.models.split(","))
            path = os.path.join(folder, "train%d.py" % number)
            with open(path, "w", encoding="ascii") as stream:
                stream.write(text)
            runs = Runs(options.build, options.python, gib)
            largest = runs.try_sizes(path, "..")
            for size in sorted({largest + 1, largest + largest // 8 + 1, largest * 2}) if largest else ():
                verdict = runs.verdict(path, size)
                named, how = advised(verdict, size)
                row = {"kind": kind, "gib": gib, "largest": largest, "failed": size, "named": named, "how": how, "cause": verdict.get("cause"),
                       "optimizer": choice["optimizer"], "autocast": choice["autocast"]}
                if named is not None:
                    row["ran"] = largest == 0 if named == 0 else named in runs.try_sizes(path, named)
                    row["next_ran"] = named + 1 <= largest
                rows.append(row)
                print(json.dumps(row), flush=True)
    known = [r for r in rows if r["named"] is not None]
    print("%d failures: %d not known; %d named: %d ran, %d of them were the largest; the least was %s of it"
          % (len(rows), len(rows) - len(known), len(known), sum(r["ran"] for r in known), sum(r["named"] == r["largest"] for r in known),
             "%.0f %%" % min((100 * r["named"] / r["largest"] for r in known if r["ran"]), default=0)))
    if options.json:
        with open(options.json, "w", encoding="ascii") as stream:
            json.dump(rows, stream)
    return 0 if all(r["ran"] for r in known) else 1


if __name__ == "__main__":
    sys.exit(main())
