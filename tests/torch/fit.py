#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuwhy fit` with real PyTorch on the simulated GPU: cards, what helps, the largest batch by dry runs and from recordings.

    tests/torch/fit.py [--build build] [--torch FOLDER]

Without --torch, the wheel of check.py.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

# Activations of 64 MiB for each of the batch, kept by a deep network; it trains for ever.
TRAIN = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
batch = parser.parse_args().batch_size
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(16))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
while True:
    optimizer.zero_grad()
    model(torch.randn(batch * 512, 2048, device="cuda")).sum().backward()
    optimizer.step()
"""


def fit(options, folder, words, status):
    env = dict(os.environ, PYTHONPATH=options.torch)
    program = os.path.join(folder, "train.py")
    with open(program, "w", encoding="ascii") as out:
        out.write(TRAIN)
    before, after = words
    done = subprocess.run([os.path.join(options.build, "cuwhy"), "fit", "--json", "--no-remedies", *before, "--", sys.executable, program, *after], env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def check_cards(options, folder):
    """8 GB are too little for a batch of 120, 40 GB are enough; the same again is the same."""
    found = fit(options, folder, (["--gpu", "rtx4060,a100-40gb"], ["--batch-size", "120"]), 1)
    small, large = found["cards"]
    assert (small["fits"], large["fits"]) == (False, True), found
    # a training that was ended early fits so far
    assert large["exact"] == (not found.get("steps")), found
    assert small["failure"]["where"].endswith("train.py:10"), small
    assert found["recorded"][0]["same_again"] and found["settled"] and found["steps"] <= 15, found
    return "rtx4060 no, a100-40gb yes with %.1f GiB to spare" % (large["spare"] / 2 ** 30)


def run(options, words, batch):
    """Five steps on a simulated GPU."""
    program = TRAIN.replace("while True", "for _ in range(5)")
    return subprocess.run([os.path.join(options.build, "cuwhy"), "run", *words, "--", sys.executable, "-c", program, "--batch-size", str(batch)],
                          env=dict(os.environ, PYTHONPATH=options.torch), capture_output=True, text=True, check=False)


def check_sizes(options, folder):
    """From recordings of three small batches: the largest that fits, and the next does not."""
    sizes = (10, 20, 40)
    for batch in sizes:
        done = run(options, ["--gpu", "sim:rtx4060", "--memory-trace", "--out", os.path.join(folder, str(batch))], batch)
        assert done.returncode == 0, done.stderr
    done = subprocess.run([os.path.join(options.build, "cuwhy"), "fit", "--json", "--gpu", "rtx4060", "--sizes", ",".join(map(str, sizes)),
                           *(os.path.join(folder, str(batch)) for batch in sizes)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = json.loads(done.stdout)["sizes"]["cards"][0]
    largest = found["largest"]
    assert found["low"] <= largest <= found["high"] and 40 < largest < 130, found
    assert run(options, ["--gpu", "sim:rtx4060"], largest).returncode == 0, largest
    assert run(options, ["--gpu", "sim:rtx4060"], largest + 2).returncode == 1, largest
    return "batch size %d on an rtx4060 from recordings of %s" % (largest, ", ".join(map(str, sizes)))


# What every step leaves: a tensor, one that grows, tensors of many sizes; and a history that is full one day.
KEEPS = """
import collections, random, sys, torch
random.seed(1)
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept, ring, grown = [], collections.deque(maxlen=20), torch.empty(0, 2048, device="cuda")
how, step = sys.argv[1], 0
try:
    while True:
        step += 1
        optimizer.zero_grad()
        y = model(torch.randn(random.randint(4000, 8192) if how == "varied" else 8192, 2048, device="cuda"))
        y.square().mean().backward()
        optimizer.step()
        if how == "grown":
            grown = torch.cat([grown, y.detach()])
        elif how == "ring":
            ring.append(y.detach())
        elif how != "seldom" or step % 10 == 0:
            kept.append(y.detach())
except torch.OutOfMemoryError:
    print("failed in step", step)
"""


def fails_at(options, program, card, how):
    done = subprocess.run([os.path.join(options.build, "cuwhy"), "run", "--gpu", "sim:" + card, "--", sys.executable, program, how],
                          env=dict(os.environ, PYTHONPATH=options.torch), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("failed in step "), (done.stdout, done.stderr)
    return int(done.stdout.split()[-1])


def check_growth(options, folder):
    """In which step memory runs out, against dry runs on that very card."""
    program = os.path.join(folder, "keeps.py")
    with open(program, "w", encoding="ascii") as out:
        out.write(KEEPS)
    said = []
    for how in ("kept", "grown", "varied", "seldom"):
        done = subprocess.run([os.path.join(options.build, "cuwhy"), "fit", "--json", "--no-remedies", "--steps", "60", "--gpu", "rtx4060,a100-40gb", "--",
                               sys.executable, program, how],
                              env=dict(os.environ, PYTHONPATH=options.torch), capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)
        assert (done.returncode, found["fits"], found["settled"]) == (1, False, False), (how, found)
        for card in found["cards"]:
            told, truth = card["growth"]["fails_at"], fails_at(options, program, card["gpu"], how)
            if told is None:
                assert truth <= found["steps"] and "fits_percent" not in card, (how, card, truth)
                continue
            assert abs(told - truth) <= max(1, truth * 0.05), (how, card, truth)
            assert card["growth"]["line"].startswith(program), card
            said.append("%s on %s: %d, was %d" % (how, card["gpu"], told, truth))
    done = subprocess.run([os.path.join(options.build, "cuwhy"), "fit", "--json", "--no-remedies", "--gpu", "a100-40gb", "--", sys.executable, program, "ring"],
                          env=dict(os.environ, PYTHONPATH=options.torch), capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert (done.returncode, found["settled"], "growth" in found["cards"][0]) == (0, True, False), found
    return "the step in which memory runs out: " + "; ".join(said)


def check_growth_played_on(options, folder):
    """A recording of a program that ran out of memory, asked about another card: it would have run out there, too."""
    program, told = os.path.join(folder, "keeps.py"), []
    for how in ("kept", "grown"):
        recording = os.path.join(folder, how)
        subprocess.run([os.path.join(options.build, "cuwhy"), "run", "--gpu", "sim:rtx4060", "--memory-trace", "--out", recording, "--", sys.executable,
                        program, how], env=dict(os.environ, PYTHONPATH=options.torch), capture_output=True, check=False)
        done = subprocess.run([os.path.join(options.build, "cuwhy"), "memory", "--json", "--what-if", "gpu=a100-40gb", recording], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1, (done.stdout, done.stderr)
        answer = json.loads(done.stdout)["what_if"][0]["answers"][1]
        truth = fails_at(options, program, "a100-40gb", how)
        assert not answer["fits"] and abs(answer["growth"]["fails_at"] - truth) <= truth * 0.05, (how, answer, truth)
        assert answer["growth"]["line"].startswith(program), answer
        told.append("%s: iteration %d, was %d" % (how, answer["growth"]["fails_at"], truth))
    return "from a recording on an rtx4060, on an a100-40gb: " + "; ".join(told)


def check_largest(options, folder):
    """The largest batch is that of dry runs on the card itself."""
    largest = fit(options, folder, (["--gpu", "rtx4060", "--vary", "batch-size=60..130"], []), 0)["vary"]["cards"][0]["largest"]
    assert 60 <= largest < 130, largest
    for batch, status in ((largest, 0), (largest + 1, 1)):
        done = run(options, ["--gpu", "sim:rtx4060"], batch)
        assert done.returncode == status, (batch, done.stderr)
    return "batch size %d on an rtx4060, as dry runs on it confirm" % largest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", help="folder with PyTorch")
    options = parser.parse_args()
    if not options.torch:
        import check
        options.torch, why = check.install("2.11.0")
        if not options.torch:
            print("fit: SKIPPED: PyTorch cannot be installed: %s" % why)
            return 0
    with tempfile.TemporaryDirectory() as folder:
        for test in (check_cards, check_growth, check_growth_played_on, check_largest, check_sizes):
            print("ok - fit: %s" % test(options, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
