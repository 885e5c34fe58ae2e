#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches that differ in size: the percentage that the verdict names runs, and 3 points more does not.

    tests/torch/varying.py [--build build] [-j N] [--seed N] [--count N] [--keep FOLDER]

Programs are made of a model, a way in which batches differ (one that is long, buckets of lengths, ragged ones, lengths that grow, a last one that is
smaller) and an optimizer. A dry run without a limit says what each iteration needs; the card is chosen such that one of them runs out of
memory, and none before it. A verdict may name no percentage; that is counted, and no failure. Status 1: one that was named was wrong.
"""
import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check  # noqa: E402

LIMIT = 300

MODELS = {
    "rows": ("""
model = nn.Sequential(nn.Linear(256, WIDTH), nn.ReLU(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 32)).cuda()

def loss_of(n, length):
    x = torch.randn(n, 256, device="cuda")
    y = torch.randint(32, (n,), device="cuda")
    return nn.functional.cross_entropy(model(x), y)
""", (150000, 600000), False),
    "tokens": ("""
layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True)
model = nn.Sequential(nn.Embedding(8000, WIDTH), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(WIDTH, 8000)).cuda()

def loss_of(n, length):
    tokens = torch.randint(8000, (n, length), device="cuda")
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
""", (150, 500), True),
    "recurrent": ("""
embed, rnn, head = nn.Embedding(5000, 128).cuda(), nn.GRU(128, WIDTH, 2, batch_first=True).cuda(), nn.Linear(WIDTH, 5000).cuda()
model = nn.ModuleList([embed, rnn, head])

def loss_of(n, length):
    words = torch.randint(5000, (n, length), device="cuda")
    out, _ = rnn(embed(words))
    return nn.functional.cross_entropy(head(out).transpose(1, 2), words)
""", (200, 600), True),
    "sets": ("""
model = nn.ModuleDict({"point": nn.Sequential(nn.Linear(6, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)), "head": nn.Linear(WIDTH, 10)}).cuda()

def loss_of(n, length):
    lengths = torch.full((n,), length)
    owner = torch.repeat_interleave(torch.arange(n), lengths).cuda()
    points = model["point"](torch.randn(len(owner), 6, device="cuda"))
    pooled = torch.zeros(n, WIDTH, device="cuda").index_add(0, owner, points)
    return model["head"](pooled / length).logsumexp(1).mean()
""", (3000, 9000), True),
    "graph": ("""
model = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(4)]).cuda()

def loss_of(n, length):
    nodes = torch.randn(n, WIDTH, device="cuda")
    source, target = torch.randint(n, (4 * n,)).cuda(), torch.randint(n, (4 * n,)).cuda()
    for linear in model:
        messages = linear(nodes)[source].relu()
        nodes = nodes + torch.zeros_like(nodes).index_add(0, target, messages)
    return nodes.square().mean()
""", (50000, 200000), False),
    "pictures": ("""
model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()

def loss_of(n, length):
    x = torch.randn(n, 3, 128, 128, device="cuda")
    return model(x).logsumexp(1).mean()
""", (300, 1500), False),
}
OPTIMIZERS = ["torch.optim.AdamW(model.parameters())", "torch.optim.SGD(model.parameters(), lr=0.1)", "torch.optim.Adam(model.parameters(), foreach=False)"]
PROGRAM = """import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--percent", type=int, default=100)
parser.add_argument("--turns", type=int, default=0)
args = parser.parse_args()
WIDTH = %(width)d
%(model)s
optimizer = %(optimizer)s
batches = %(batches)s
for turn, (n, length) in enumerate(batches[:args.turns or None]):
    torch.cuda.reset_peak_memory_stats()
    loss = loss_of(max(1, n * args.percent // 100), length)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    free, total = torch.cuda.mem_get_info()
    print("turn", turn, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), total - free - torch.cuda.memory_reserved(), flush=True)
"""


def one_long(dice, n, length):
    small = int(n * dice.uniform(0.15, 0.4))
    turns = [(small, length)] * dice.randint(2, 6)
    return turns + [(n, length), (small, length)]


def ragged(dice, n, length):
    turns = [(int(n * dice.uniform(0.1, 0.55)), length) for _ in range(dice.randint(3, 7))]
    return turns + [(n, length)]


def buckets(dice, n, length):
    turns = [(n, dice.choice([length // 4, length // 2, length * 5 // 8])) for _ in range(dice.randint(3, 8))]
    return turns + [(n, length)]


def growing(dice, n, length):
    steps = dice.randint(3, 6)
    return [(n, length * (i + 1) // steps) for i in range(steps)] + [(n, length * 2)]


def last_smaller(dice, n, length):
    small = int(n * dice.uniform(0.2, 0.5))
    return [(small, length)] * 3 + [(small // 3, length), (n, length), (n // 3, length)]


def both(dice, n, length):
    turns = [(int(n * dice.uniform(0.3, 0.8)), int(length * dice.uniform(0.4, 0.9))) for _ in range(dice.randint(3, 6))]
    return turns + [(n, length)]


def tokens_per_batch(dice, n, length):
    total = n * length // 2
    turns = [(max(1, total // each), each) for each in (int(length * dice.uniform(0.3, 0.9)) for _ in range(dice.randint(3, 6)))]
    return turns + [(n, length)]


def make(seed):
    dice = random.Random(seed)
    name = dice.choice(sorted(MODELS))
    text, (low, high), lengths = MODELS[name]
    ways = [one_long, ragged, last_smaller] + ([buckets, growing, both, tokens_per_batch] if lengths else [])
    way = dice.choice(ways)
    return "%d_%s_%s" % (seed, name, way.__name__), PROGRAM % {
        "width": dice.choice([128, 192, 256, 384]), "model": text, "optimizer": dice.choice(OPTIMIZERS),
        "batches": way(dice, dice.randint(low, high), dice.choice([64, 96, 128, 160]))}


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def run(self, file, memory, *words):
        """Its exit status, the turns' figures and the verdict."""
        out = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run([os.path.join(self.args.build, "cuwhy"), "run", "--gpu", "sim:h200,memory=%d" % memory, "--out", out, "-f", "--",
                               sys.executable, file, *words], capture_output=True, text=True, timeout=LIMIT, check=False)
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
            verdict = json.load(stream)
        return done.returncode, [[int(w) for w in line.split()[1:]] for line in done.stdout.splitlines()], verdict

    def follow(self, seed):
        """(right, what was said and what came of it)"""
        name, text = make(seed)
        file = os.path.join(self.folder, name + ".py")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        _, turns, _ = self.run(file, 4 << 40)
        outside = max(t[3] for t in turns)
        worst = max(range(len(turns)), key=lambda i: turns[i][1])
        before = max([t[1] for t in turns[:worst]] or [0])
        room = int(before + (turns[worst][1] - before) * random.Random(seed).uniform(0.3, 0.95))
        if turns[worst][1] < before * 1.2:
            return None, name, "no iteration needs much more than those before it"
        memory = outside + room
        status, got, verdict = self.run(file, memory)
        if status == 0 or len(got) != worst:
            return None, name, "ran to turn %d of %d" % (len(got), worst)
        fits = verdict.get("memory", {}).get("fits") or {}
        percent = fits.get("percent")
        if not percent:
            return None, name, "no percentage: %s, %s" % (verdict["cause"], json.dumps(fits))
        runs, more = (len(self.run(file, memory, "--percent", str(p), "--turns", str(worst + 1))[1]) == worst + 1 for p in (percent, percent + 3))
        right = runs and (not more or "pictures" in name) # a convolution may do with less than it asked for
        return right, name, "%d %%: %s, 3 points more %s" % (percent, "runs" if runs else "FAILS", "RUNS" if more else "fails")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--keep", help="put the programs into this folder")
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = check.install("2.11.0")[0]
    count = {True: 0, False: 0, None: 0}
    with tempfile.TemporaryDirectory(prefix="cuwhy-varying-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        bench = Bench(args, args.keep or folder)
        for right, name, text in pool.map(bench.follow, range(args.seed, args.seed + args.count)):
            count[right] += 1
            print("%s %-28s %s" % ("ok    " if right else "not ok" if right is False else "none  ", name, text), flush=True)
    print("of %d that were named, %d are right; %d were not named" % (count[True] + count[False], count[True], count[None]))
    return 1 if count[False] else 0


if __name__ == "__main__":
    sys.exit(main())
