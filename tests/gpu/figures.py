#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the memory figures right? On a real GPU, compared with PyTorch's and the driver's own.

    tests/gpu/figures.py [--build build] [name…]

exact    PyTorch's allocated and reserved bytes at a hundred random moments, to the byte
kinds    parameters, gradients and optimizer state of five trainings, within 2 %; the ledger within 1 % of the card
machine  `cuwhy memory --json` compared with nvidia-smi
Without a GPU or PyTorch everything is skipped, with a message.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPANDABLE, ASYNC = "expandable_segments:True", "backend:cudaMallocAsync"
EXACT = (("eager", ""), ("eager", EXPANDABLE), ("compile", ""), ("graphs", ""), ("graphs", EXPANDABLE))
MODELS = (("mlp", "torch"), ("transformer", "torch"), ("conv", "torch"), ("gpt2", "transformers"), ("lightning", "lightning"))


def result_of(text):
    for line in text.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[len("RESULT "):])
    return None


class Figures:
    def __init__(self, args, folder):
        self.cuwhy, self.python, self.folder, self.rows = os.path.join(args.build, "cuwhy"), args.python, folder, []
        self.names = args.names

    def say(self, name, ok, text):
        self.rows.append((name, ok, text))
        print("%s %-28s %s" % ("ok    " if ok else "skip  " if ok is None else "not ok", name, text), flush=True)

    def wanted(self, name):
        return not self.names or any(part in name for part in self.names)

    def under(self, name, conf, *program):
        out = os.path.join(self.folder, name)
        env = dict(os.environ, NO_COLOR="1")
        if conf:
            env["PYTORCH_CUDA_ALLOC_CONF"] = conf
        run = subprocess.run([self.cuwhy, "run", "--keep", "--out", out, self.python, *program],
                             capture_output=True, text=True, env=env, timeout=300)
        return run, out

    def library(self):
        place = os.path.join(self.folder, "now.so")
        subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-O1", "-I", os.path.join(HERE, "..", "..", "include"),
                        os.path.join(HERE, "figures", "now.c"), "-o", place], check=True)
        return place

    def exact(self):
        library = self.library()
        for mode, conf in EXACT:
            name = "exact-%s%s" % (mode, "-expandable" if conf else "")
            if not self.wanted(name):
                continue
            run, _ = self.under(name, conf, os.path.join(HERE, "figures", "exact.py"), library, mode)
            got = result_of(run.stdout)
            if not got:
                self.say(name, False, "the program failed: " + run.stderr.strip()[-300:])
                continue
            self.say(name, got["differ"] == 0, "%d of %d moments equal to the byte, up to %.1f GiB reserved%s" % (
                got["moments"] - got["differ"], got["moments"], got["reserved_most"] / 2**30,
                "" if not got["differ"] else "; first: %s" % got["first"]))

    def asynchronous(self):
        """PyTorch does not report this backend's blocks: the driver's figures are used instead, with a message."""
        name = "async-backend"
        if not self.wanted(name):
            return
        run, out = self.under(name, ASYNC, os.path.join(HERE, "figures", "kinds.py"), "mlp")
        own, device = result_of(run.stdout), self.device(out)
        if not own or not device:
            self.say(name, False, "no figures: " + run.stderr.strip()[-300:])
            return
        seen = device["parts"]["tensors"] + sum(line["bytes"] for line in device["lines"] if line["part"] == "other_libraries"
                                                and not str(line.get("library")).startswith("libcublas"))
        share = 100.0 * (seen - own["allocated"]) / own["allocated"]
        self.say(name, abs(share) < 2, "%.3f GiB accounted to this process, PyTorch says %.3f GiB (%+.2f %%) and %.3f GiB with the "
                 "driver's pool; kinds of tensors: %s" % (seen / 2**30, own["allocated"] / 2**30, share, own["reserved"] / 2**30,
                                                        "told" if device["kinds"]["parameters"] else "not told"))

    def device(self, out):
        shown = subprocess.run([self.cuwhy, "memory", "--json", "--at", "oom", out], capture_output=True, text=True)
        try:
            return json.loads(shown.stdout)["devices"][0]
        except (ValueError, KeyError, IndexError):
            return None

    def kinds(self):
        for model, needs in MODELS:
            name = "kinds-" + model
            if not self.wanted(name):
                continue
            if subprocess.run([self.python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec(%r) is None)" % needs]).returncode:
                self.say(name, None, "no " + needs)
                continue
            run, out = self.under(name, "", os.path.join(HERE, "figures", "kinds.py"), model)
            own, device = result_of(run.stdout), self.device(out)
            if not own or not device:
                self.say(name, False, "no figures: " + run.stderr.strip()[-300:])
                continue
            off = {kind: 100.0 * (device["kinds"][kind] - own[kind]) / own[kind] for kind in ("parameters", "gradients", "optimizer")}
            used = sum(size for part, size in device["parts"].items() if part not in ("rest", "unmeasured", "free"))
            ledger = 100.0 * (used - (own["total"] - own["free"])) / own["total"]
            whole = sum(device["parts"].values()) == own["total"] == device["total"]
            same = device["allocated"] == own["allocated"] and device["reserved"] == own["reserved"]
            ok = all(abs(x) <= 2 for x in off.values()) and abs(ledger) <= 1 and whole and same
            self.say(name, ok, "%s; ledger %+.3f %% of the card from cuMemGetInfo; parts %s%s" % (
                ", ".join("%s %.1f MiB %+.2f %%" % (kind, own[kind] / 2**20, x) for kind, x in off.items()), ledger,
                "add up" if whole else "do not add up",
                "" if same else "; allocated %d, PyTorch says %d; reserved %d, PyTorch says %d" % (
                    device["allocated"], own["allocated"], device["reserved"], own["reserved"])))

    def machine(self):
        if not self.wanted("machine"):
            return
        ask = subprocess.run(["nvidia-smi", "--query-gpu=index,uuid,memory.total,memory.used", "--format=csv,noheader,nounits"],
                             capture_output=True, text=True)
        shown = subprocess.run([self.cuwhy, "memory", "--json"], capture_output=True, text=True)
        smi = [[word.strip() for word in line.split(",")] for line in ask.stdout.splitlines()]
        ours = json.loads(shown.stdout or "{}").get("gpus", [])
        far = [abs(gpu["used"] / 2**20 - float(row[3])) for gpu, row in zip(ours, smi)] if len(ours) == len(smi) else [1e9]
        same = [gpu["uuid"] == row[1] and abs(gpu["total"] / 2**20 - float(row[2])) < 1.5 for gpu, row in zip(ours, smi)]
        self.say("machine", bool(smi) and all(same) and max(far) < 16, "%d GPU(s), total and uuid %s, used within %.1f MiB of nvidia-smi"
                 % (len(ours), "equal" if all(same) and same else "differ", max(far)))


def main():
    parser = argparse.ArgumentParser(description="figures of memory on a real GPU")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--keep", help="leave the recordings in this folder")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    probe = subprocess.run([args.python, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True)
    if probe.returncode:
        print("skipped: no GPU or no PyTorch here")
        return 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-figures-") as folder:
        figures = Figures(args, os.path.abspath(args.keep) if args.keep else folder)
        os.makedirs(figures.folder, exist_ok=True)
        figures.exact()
        figures.kinds()
        figures.asynchronous()
        figures.machine()
    bad = sum(ok is False for _, ok, _ in figures.rows)
    print("%d right, %d wrong, %d skipped" % (sum(ok is True for _, ok, _ in figures.rows), bad, sum(ok is None for _, ok, _ in figures.rows)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
