#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The largest batch that fits is the same number, whoever is asked.

    tests/torch/one_number.py [--build build] [--torch FOLDER] [--gpu rtx4060]

One training runs out of memory on a simulated card. Its verdict, `cuwhy explain`, the page, `cuwhy fit` on the program and on the recording, `memory --what-if`,
`cuwhy.fits()` and --sizes must name the size that --vary finds by running the program; what the verdict calls the option is the framework's word for it.
Where memory runs out while a loop builds the model, none is named: what the rest of the loop needs is not known.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

BATCH = 96
PATIENCE = 600      # seconds

PROGRAM = """
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
import torch
from torch import nn
%(imports)s

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
options = parser.parse_args()
model = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))], nn.Linear(1024, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())

def step(inputs, labels):
    loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

def batches():
    for _ in range(6):
        yield (torch.randn(options.batch_size, 256, 1024, device="cuda"), torch.randint(8, (options.batch_size, 256), device="cuda"))

%(loop)s
"""
LOOP = """
for x, y in batches():
    step(x, y)
"""
CAUGHT = """
for x, y in batches():
    try:
        step(x, y)
    except torch.OutOfMemoryError as error:
        print("fits", cuwhy.fits(error, batch=options.batch_size, timeout=%d))
        break
""" % PATIENCE
BUILT = """
caches = []
for layer in range(200):
    caches.append((nn.Linear(1024, 1024).cuda(), torch.zeros(options.batch_size, 256, 1024, device="cuda")))
"""
TRAINER = """
class Trainer:
    def training_step(self, step, x, y):
        step(x, y)

    def train(self, step, batches):
        for x, y in batches:
            self.training_step(step, x, y)
"""
TRAINED = "Trainer().train(step, batches())"


class Asking:
    def __init__(self, options, folder):
        self.cuwhy = os.path.abspath(os.path.join(options.build, "cuwhy"))
        self.gpu, self.folder, self.failed = options.gpu, folder, 0
        package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
        self.env = dict(os.environ, PYTHONPATH=os.pathsep.join([options.torch, os.path.abspath(package)]),
                        PATH=os.path.dirname(self.cuwhy) + os.pathsep + os.environ["PATH"])
        trainer = os.path.join(folder, "site-packages", "transformers")
        os.makedirs(trainer)
        for name, text in (("__init__.py", ""), ("trainer.py", TRAINER)):
            with open(os.path.join(trainer, name), "w", encoding="utf-8") as file:
                file.write(text)

    def program(self, name, loop, imports=""):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(PROGRAM % {"imports": imports, "loop": loop})
        return [sys.executable, name, "--batch-size"]

    def ask(self, *words):
        done = subprocess.run([self.cuwhy, *words], env=self.env, cwd=self.folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
        return done.stdout

    def answer(self, *words):
        return json.loads(self.ask(*words))

    def run(self, out, words, *options):
        self.ask("run", "--out", out, *options, "--gpu", "sim:" + self.gpu, "--", *words)
        return self.answer("explain", "--json", out)

    def check(self, what, got, want):
        self.failed += got != want
        print("%s - %s: %s%s" % ("ok" if got == want else "not ok", what, got, "" if got == want else ", expected %s" % (want,)), flush=True)


def numbers(a):
    """Who is asked, and what is answered."""
    words = a.program("train.py", LOOP)
    failing = words + [str(BATCH)]
    yield "the verdict", a.run("out", failing)["memory"]["fits"]["size"]
    with open(os.path.join(a.folder, "out", "verdict.json"), encoding="utf-8") as file:
        yield "as `cuwhy run` left it", json.load(file)["memory"]["fits"]["size"]
    a.ask("report", "--out", "page.html", "out")
    with open(os.path.join(a.folder, "page.html"), encoding="utf-8") as file:
        page = file.read()
    at = page.find('"fits":{"batch":%d,"size":' % BATCH)
    yield "the page", int(page[at:].split('"size":')[1].split(",")[0]) if at >= 0 else None
    yield "fit, of the recording", a.answer("fit", "--json", "--gpu", a.gpu, "out")["recordings"][0]["cards"][0].get("fits_size")
    # it did not fail in the dry run, so its tensors were not looked at: of the batch, a part is known
    yield "fit, of the program", BATCH * a.answer("fit", "--json", "--gpu", a.gpu, "--", *failing)["cards"][0].get("fits_percent", 0) // 100
    yield "memory --what-if", a.answer("memory", "--json", "--what-if", "gpu=" + a.gpu, "out")["what_if"][0]["answers"][-1].get("fits_size")
    said = a.ask("run", "--gpu", "sim:" + a.gpu, "--", *a.program("caught.py", CAUGHT, "import cuwhy"), str(BATCH)).split()
    yield "cuwhy.fits()", int(said[said.index("fits") + 1]) if "fits" in said else None
    for size in (16, 32, 64):
        a.run("out%d" % size, words + [str(size)], "--memory-trace")
    yield "fit --sizes", a.answer("fit", "--json", "--gpu", a.gpu, "--sizes", "16,32,64", "out16", "out32", "out64")["sizes"]["cards"][0]["largest"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", help="folder with PyTorch; without it, the wheel of check.py")
    parser.add_argument("--gpu", default="rtx4060", help="the card (default: %(default)s)")
    options = parser.parse_args()
    if not options.torch:
        import check
        options.torch, why = check.install("2.11.0")
        if not options.torch:
            print("one_number: SKIPPED: PyTorch cannot be installed: %s" % why)
            return 0
    with tempfile.TemporaryDirectory() as folder:
        a = Asking(options, folder)
        vary = a.answer("fit", "--json", "--gpu", a.gpu, "--vary", "batch-size=80..%d" % BATCH, "--", *a.program("train.py", LOOP)[:2])
        truth = vary["vary"]["cards"][0]["largest"]
        print("fit --vary: %s" % truth)
        for what, number in numbers(a):
            a.check(what, number, truth)
        a.check("a model that is built", a.run("built", a.program("built.py", BUILT) + [str(BATCH)])["memory"]["fits"], None)
        memory = a.run("trained", a.program("trained.py", TRAINED, "from transformers.trainer import Trainer") + [str(BATCH)])
        named = memory["memory"]["options"]
        a.check("the option", (named["batch"], named["accumulate"]), ("per_device_train_batch_size", "gradient_accumulation_steps"))
        a.check("the product", named["size"] * named["times"], BATCH)
        a.check("the size of the option", named["size"] <= truth < BATCH, True)
        a.check("FIX", memory["fix"][0]["command"], "args = transformers.TrainingArguments(per_device_train_batch_size=%d, gradient_accumulation_steps=%d)" % (named["size"], named["times"]))
    print("one_number: %d failed" % a.failed)
    return a.failed > 0


if __name__ == "__main__":
    sys.exit(main())
