#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The honest test of what-ifs: record with settings A, play back with B, run with B, and compare.

    tests/torch/whatif.py [--build build] [--torch FOLDER] [--real] [--json FILE] [reserved|limit …]

reserved: peak of PyTorch's memory with B, played back and real, of ten pairs of settings; the goal is 1 %.
limit: a card between what batch N and batch N + 1 need according to the playback, which must be right for both. Where it says that
it does not know (convolutions that may do with a smaller workspace), that is counted apart.

On the simulated GPU; with --real on the first GPU of this machine, whose memory another process fills up to the limit: nothing
else may use it meanwhile. One line for each pair, and the exit status is 1 if one misses.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
GPU = "h200"
STEPS = 4
EXPANDABLE = "expandable_segments:True"
PAIRS = [("mlp", "", EXPANDABLE), ("decoder", "", EXPANDABLE), ("lengths", "", EXPANDABLE), ("lengths", EXPANDABLE, ""),
         ("lengths", "", "max_split_size_mb:64"), ("lengths", "", "roundup_power2_divisions:8"), ("pieces", "", "max_split_size_mb:128"),
         ("pieces", EXPANDABLE, "roundup_power2_divisions:4"), ("convolutions", "", EXPANDABLE), ("decoder", EXPANDABLE, "")]
BATCH = {"mlp": 24, "decoder": 10, "lengths": 12, "pieces": 40, "convolutions": 24}


# ---- the programs -------------------------------------------------------------------------------------

def mlp(torch, batch):
    model = torch.nn.Sequential(*(torch.nn.Linear(3000, 3000) for _ in range(12))).cuda()
    train(torch, model, lambda: model(torch.randn(batch * 211, 3000, device="cuda")))


def decoder(torch, batch):
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).cuda()
    train(torch, model, lambda: model(torch.randn(batch, 512, 768, device="cuda")))


def lengths(torch, batch):
    """Every batch has another length, as sentences have: the allocator's cache has many sizes."""
    rng = random.Random(5)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
    train(torch, model, lambda: model(torch.randn(batch, rng.randint(100, 900), 512, device="cuda")), 25)


def pieces(torch, batch):
    """Tensors of random sizes come and go, some stay."""
    rng = random.Random(7)
    kept = []
    for step in range(60):
        some = [torch.empty(rng.randint(1, batch * MIB), dtype=torch.uint8, device="cuda") for _ in range(12)]
        kept.append(some[rng.randrange(12)][:4096].clone() if step % 3 else some[rng.randrange(12)])
        kept = kept[-25:]


def convolutions(torch, batch):
    layers = [torch.nn.Conv2d(3 if i == 0 else 64, 64, 3, padding=1) for i in range(8)]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1)).cuda()
    train(torch, model, lambda: model(torch.randn(batch, 3, 160, 160, device="cuda")))


def train(torch, model, output, steps=STEPS):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        output().float().sum().backward()
        optimizer.step()


def one(name, batch):
    import torch
    torch.manual_seed(0)
    try:
        globals()[name](torch, batch)
        torch.cuda.synchronize()
    except torch.OutOfMemoryError:
        return 3
    print(json.dumps({"reserved": torch.cuda.max_memory_reserved()}))
    return 0


# ---- running them -------------------------------------------------------------------------------------

class Bench:
    """Recordings and runs of one machine. With --real, another process leaves as much of the GPU free as a limit says."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.cuwhy = os.path.abspath(os.path.join(options.build, "cuwhy"))
        self.recorded = {}

    def start(self, name, batch, conf, prefix):
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
        if not conf:
            del env["PYTORCH_CUDA_ALLOC_CONF"]
        if self.options.torch:
            env["PYTHONPATH"] = self.options.torch
        words = [*prefix, sys.executable, os.path.abspath(__file__), "--one", name, str(batch)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise SystemExit("%s: status %d\n%s" % (" ".join(words), done.returncode, done.stderr[-2000:]))
        return json.loads(done.stdout.splitlines()[-1])["reserved"] if done.returncode == 0 else None

    def gpu(self, memory=None):
        if self.options.real:
            return []
        return ["--gpu", "sim:%s%s" % (GPU, ",memory=%dM" % (memory // MIB) if memory else "")]

    def record(self, name, batch, conf):
        """The folder of a recording with this setting, made once."""
        key = (name, batch, conf)
        if key not in self.recorded:
            folder = os.path.join(self.folder, str(len(self.recorded)))
            self.start(name, batch, conf, [self.cuwhy, "run", *self.gpu(), "--memory-trace", "--out", folder, "--"])
            self.recorded[key] = folder
        return self.recorded[key]

    def ask(self, folder, questions):
        words = [self.cuwhy, "memory", "--json", folder]
        for question in questions:
            words += ["--what-if", question]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 2:
            raise SystemExit("%s\n%s" % (done.stdout, done.stderr))
        found = json.loads(done.stdout)["what_if"][0]
        return found, found["answers"][1:]

    def run(self, name, batch, conf, memory=None):
        """Peak reserved, None when it does not fit."""
        if self.options.real:
            return self.start(name, batch, conf, [])
        return self.start(name, batch, conf, [self.cuwhy, "run", *self.gpu(memory), "--"])


def settings(conf, other):
    """The settings `conf` as a what-if of a recording that has `other`."""
    words = conf.replace(":", "=")
    return ",".join(filter(None, [words, "expandable_segments=False" if "expandable" in other and "expandable" not in conf else ""]))


def compare_reserved(bench):
    rows = []
    for name, was, conf in PAIRS:
        recorded, (answer,) = bench.ask(bench.record(name, BATCH[name], was), [settings(conf, was)])
        real = bench.run(name, BATCH[name], conf)
        off = (answer["peak_reserved"] - real) / real
        rows.append({"program": name, "recorded": was, "played": conf, "was": recorded["peak_reserved"], "predicted": answer["peak_reserved"],
                     "real": real, "off": off, "exact": answer["exact"], "same_again": recorded["same_again"], "good": abs(off) <= 0.01})
        print("%-13s %-26s -> %-28s %8.1f MiB recorded, %8.1f played back, %8.1f real: %+.2f %%%s%s" % (
            name, was or "default", conf or "default", recorded["peak_reserved"] / MIB, answer["peak_reserved"] / MIB, real / MIB, 100 * off,
            "" if answer["exact"] else ", not exact", "" if recorded["same_again"] else ", not the same again"), flush=True)
    return rows


def least_memory(bench, folder, words):
    """The smallest card on which the recording fits, played back; two rounds of 30 sizes."""
    recorded, _ = bench.ask(folder, ["memory=1TiB"])
    low, high = recorded["peak_allocated"], int(1.3 * (recorded["peak_reserved"] + recorded["outside"])) + 64 * MIB
    for _ in range(2):
        sizes = [low + (high - low) * i // 30 for i in range(1, 31)]
        _, answers = bench.ask(folder, [",".join(filter(None, [words, "memory=%d" % size])) for size in sizes])
        fits = [size for size, answer in zip(sizes, answers) if answer["fits"]]
        high = min(fits)
        low = max([size for size in sizes if size < high], default=low)
    return high


def predicted(bench, name, batch, conf, limit):
    """Does it fit, and is that exact?"""
    words = ",".join(filter(None, [settings(conf, ""), "memory=%d" % limit]))
    _, (answer,) = bench.ask(bench.record(name, batch, ""), [words])
    return answer["fits"], answer["exact"]


def compare_limits(bench):
    rows, ballast = [], None
    for name, batch in BATCH.items():       # before there is a ballast, which they would show as another process
        for n in (batch, batch + 1):
            bench.record(name, n, "")
    if bench.options.real:
        import boundary
        seen = boundary.told("free")
    for name, batch in BATCH.items():
        for conf in ("", EXPANDABLE):
            few, many = (least_memory(bench, bench.record(name, n, ""), settings(conf, "")) for n in (batch, batch + 1))
            limit = (few + many) // 2 // (2 * MIB) * 2 * MIB
            if bench.options.real:
                free = seen["free"] - (seen["total"] - limit)
                ballast = ballast or boundary.Ballast(free)
                ballast.move(free)
            got = [bench.run(name, n, conf, limit) is not None for n in (batch, batch + 1)]
            said, sure = zip(*(predicted(bench, name, n, conf, limit) for n in (batch, batch + 1)))
            right = all(s == g or not known for s, g, known in zip(said, got, sure))
            rows.append({"program": name, "played": conf, "limit": limit, "needs": [few, many], "said": said, "sure": sure, "fits": got,
                         "good": right})
            print("%-13s %-26s on %7.1f MiB (played back: %7.1f and %7.1f needed): batch %d %s, batch %d %s%s%s" % (
                name, conf or "default", limit / MIB, few / MIB, many / MIB, batch, "fits" if got[0] else "does not fit", batch + 1,
                "fits" if got[1] else "does not fit", "" if all(sure) else ", not exact", "" if right else "  <-- wrong"), flush=True)
    if ballast:
        ballast.end()
    return rows


def main():
    if sys.argv[1:2] == ["--one"]:
        return one(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", help="folder with PyTorch (default: as python3 finds it)")
    parser.add_argument("--real", action="store_true", help="on the GPU of this machine")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("what", nargs="*", help="reserved, limit (both)")
    options = parser.parse_args()
    began, rows = time.monotonic(), {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for name, compare in (("reserved", compare_reserved), ("limit", compare_limits)):
            if not options.what or name in options.what:
                rows[name] = compare(bench)
    for name, found in rows.items():
        print("%s: %d of %d good" % (name, sum(row["good"] for row in found), len(found)))
    print("%.0f s" % (time.monotonic() - began))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
    return 0 if all(row["good"] for found in rows.values() for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
