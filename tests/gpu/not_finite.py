#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first NaN or infinity that a program reads: is it told, with line and iteration, and nothing where there is none?

    tests/gpu/not_finite.py [--build build] [--python python3] [-j N]

Small trainings on a real GPU whose loss stops being a number in one known iteration, for reasons of several kinds and in several formats, and healthy ones, which fail
with status 3 in the end. Without a GPU or PyTorch everything is skipped, with a message.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as gpu  # noqa: E402

TEXT = """import torch
import torch.nn.functional as F
torch.manual_seed(%(seed)d)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).cuda().to(torch.%(dtype)s)
params = list(model.parameters())
for step in range(1, 13):
    x = torch.randn(16, 32, device="cuda", dtype=torch.%(dtype)s)
    out = model(x)
    bad = step == %(bad)d
    loss = %(loss)s
    loss.backward()
    for p in params:
        p.grad = None
    seen = %(read)s
raise SystemExit(3)
"""
LOSSES = {
    "zero_by_zero": "(out.sum() * (0.0 if bad else 1.0)) / (0.0 if bad else 1.0)",
    "log_of_negative": "out.square().mean().mul(-1.0 if bad else 1.0).log()",
    "overflow": "(out.float().abs().mean() * (1e30 if bad else 1.0)).exp().square() if bad else out.float().mean()",
    "masked_softmax": "out.masked_fill(torch.tensor(bad, device='cuda'), float('-inf')).softmax(-1).mean()",
    "nan_in_data": "F.mse_loss(out + (float('nan') if bad else 0.0), torch.zeros_like(out))",
    "division_by_norm": "(out * 0 / (out * 0).norm()).sum() if bad else out.sum()",
    "healthy": "F.mse_loss(out, torch.zeros_like(out))",
}
READS = ("loss.item()", "float(loss)", "loss.detach().cpu()", "loss.tolist()")
DTYPES = ("float32", "float32", "float64", "bfloat16", "float16")


def programs():
    for i, (kind, loss) in enumerate(list(LOSSES.items()) * 3):
        for dtype in (DTYPES[i % len(DTYPES)],):
            yield kind, TEXT % {"seed": i, "dtype": dtype, "bad": 0 if kind == "healthy" else 3 + i % 7, "loss": loss,
                                "read": READS[i % len(READS)]}, 3 + i % 7, "%s.%s.%s" % (kind, dtype, READS[i % len(READS)])


def tried(args, folder, number, row):
    kind, text, step, name = row
    path = os.path.join(folder, "p%d.py" % number)
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    done = subprocess.run([os.path.join(os.path.abspath(args.build), "cuwhy"), "run", "--", args.python, path], capture_output=True, text=True,
                          timeout=300, cwd=folder, check=False)
    lines = text.splitlines()
    said = [line.partition("had read ")[2] for line in done.stderr.splitlines() if "the program had read" in line]
    read = next(i for i, line in enumerate(lines, 1) if line.startswith("    seen"))
    wanted = "at p%d.py:%d, in about iteration %d of the loop at p%d.py:6" % (number, read, step, number)
    said = [text.replace("in iteration", "in about iteration") for text in said]
    right = not said if kind == "healthy" else len(said) == 1 and wanted in said[0]
    return "%-6s %-46s %s%s" % ("ok" if right else "not ok", name, said[0] if said else "nothing", "" if done.returncode == 3 else " # status %d: %s" % (
        done.returncode, done.stderr[-300:])), right


def main():
    parser = argparse.ArgumentParser(description="NaN and infinity on a real GPU")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="programs at a time")
    args = parser.parse_args()
    missing = gpu.what_is_missing(args.python) & {"GPU", "torch"}
    if missing:
        print("not_finite: skipped, there is no %s" % " and no ".join(sorted(missing)))
        return 0
    rows = list(programs())
    with tempfile.TemporaryDirectory(prefix="cuwhy-not-finite-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        done = [job.result() for job in [pool.submit(tried, args, folder, i, row) for i, row in enumerate(rows)]]
    for text, _ in done:
        print(text)
    right = sum(ok for _, ok in done)
    print("%d of %d right" % (right, len(rows)))
    return right != len(rows)


if __name__ == "__main__":
    sys.exit(main())
