#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The edits that `cuwhy fit` prints: do they leave the losses of the first steps as they promise?

    tests/torch/losses.py --make FOLDER [--build build] [--count 10] [name…]    programs that do not fit, and each with an edit that makes it fit
    tests/torch/losses.py --real FOLDER [-j N] [name…]                          runs them on this machine's GPU, as it is, and compares
    tests/torch/losses.py --rehearse FOLDER [-j N] [name…]                      the same on a simulated GPU, where nothing is computed

FOLDER has NAME.py, NAME.CHANGE.py for each edit, and losses.json. Each program runs with seed 0 and deterministic algorithms, for seven steps of its
optimizer at most. A loss is what it calls backward() on, with all its digits. The program as it is runs twice: what differs then is its own noise.

`the same` and `other averages` (BatchNorm's, which a training does not use): bit for bit, or as close as the program is to itself: a recomputed forward pass
runs the same kernels on the same values, and no_grad keeps nothing but the graph. `up to rounding`: 1e-4 of the loss, as each of seven updates may round each
parameter in another way (6e-8 of it), which a network amplifies. `less precise`: the difference is printed, and must not be half of the loss.
Status 1: one of them does not agree.
"""
import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import remedies_programs  # noqa: E402
import smaller_card  # noqa: E402

LIMIT = 400
CARDS = ",".join("%dMiB" % (700 * 1.1 ** n) for n in range(37))
NAMES = ["edits", "edited_optimizer", "edited_validation", "kept_losses", "tiny_gpt", "mlm_bert", "dense_moe_lm", "validation", "large_optimizer"]
TOLERANCE = {"the same": 0, "other averages": 0, "up to rounding": 1e-4, "less precise": 0.5}
RECORD = """
import atexit, importlib, importlib.util, json, os, random, sys

class Losses:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def load_and_watch(module):
            load(module)
            self.watch(module)
        spec.loader.exec_module = load_and_watch
        return spec

    def watch(self, torch):
        file, said, steps = os.environ["CUWHY_TEST_LOSSES"], [], {}
        random.seed(0)
        torch.manual_seed(0)
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False     # it would be NaN where nothing is computed
        torch.backends.cudnn.benchmark = False
        backward = torch.Tensor.backward

        def watched(loss, *args, **kwargs):
            if loss.numel() == 1:
                said.append(loss.detach().double().item().hex())
            return backward(loss, *args, **kwargs)

        def stepped(optimizer, args, kwargs):
            steps[id(optimizer)] = steps.get(id(optimizer), 0) + 1
            if steps[id(optimizer)] == 7:
                save()
                sys.stdout.flush()
                os._exit(0)

        def save():
            with open(file, "w", encoding="ascii") as out:
                json.dump(said, out)

        torch.Tensor.backward = watched
        importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(stepped)
        atexit.register(save)

if "CUWHY_TEST_LOSSES" in os.environ:
    sys.meta_path.insert(0, Losses())
"""


# --- making them --------------------------------------------------------------------------------


def source(name):
    """Its text and arguments."""
    path = os.path.join(HERE, "sizes", name + ".py")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return text, ["--steps", "7"] if '"--steps"' in text else []
    return remedies_programs.HEAD + remedies_programs.PROGRAMS[name].text, ["none"]


def make(args):
    os.makedirs(args.make, exist_ok=True)
    os.environ["CUWHY_WRITES_MODE"] = ""    # where writes are real nothing is tried
    rows, index = [], os.path.join(args.make, "losses.json")
    if os.path.exists(index):       # more of them
        with open(index, encoding="utf-8") as file:
            rows = [row for row in json.load(file) if row["before"][:-3] not in (args.names or NAMES)]
    for name in args.names or NAMES:
        text, arguments = source(name)
        with open(os.path.join(args.make, name + ".py"), "w", encoding="utf-8") as file:
            file.write(text)
        words = [os.path.abspath(os.path.join(args.build, "cuwhy")), "fit", "--json", "--gpu", CARDS, "--", sys.executable, name + ".py", *arguments]
        done = subprocess.run(words, cwd=args.make, capture_output=True, text=True, check=False)
        for one in json.loads(done.stdout).get("remedies", {"tried": []})["tried"]:
            if "patch" not in one or len(rows) == args.count:
                continue
            after = "%s.%s.py" % (name, "+".join(one["changes"]))
            subprocess.run(["patch", "-o", after, name + ".py"], cwd=args.make, input=one["patch"]["diff"], text=True, capture_output=True, check=True)
            rows.append({"before": name + ".py", "after": after, "arguments": arguments, "numbers": one["numbers"], "fits": one["patch"]["gpu"]})
            print("%-44s %-16s fits on %s" % (after, one["numbers"], one["patch"]["gpu"]), flush=True)
        with open(index, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
        if len(rows) == args.count:
            break
    return 0


# --- comparing them -----------------------------------------------------------------------------


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="ascii") as out:
            out.write(RECORD)
        self.prefix = [os.path.abspath(os.path.join(args.build, "cuwhy")), "run", "--writes=real", "--gpu", "sim:h200", "--"] if args.rehearse else []

    def losses(self, file, arguments):
        handle, path = tempfile.mkstemp(dir=self.folder)
        os.close(handle)
        env = dict(os.environ, CUWHY_TEST_LOSSES=path, CUBLAS_WORKSPACE_CONFIG=":4096:8")
        env["PYTHONPATH"] = os.pathsep.join([self.folder] + [p for p in [env.get("PYTHONPATH")] if p])
        done = subprocess.run([*self.prefix, sys.executable, file, *arguments], cwd=self.args.real or self.args.rehearse, env=env, capture_output=True,
                              text=True, timeout=LIMIT, check=False)
        if done.returncode:
            raise RuntimeError("%s: %s" % (file, done.stderr.strip()[-300:]))
        with open(path, encoding="ascii") as said:
            return [float.fromhex(loss) for loss in json.load(said)]

    def compare(self, row):
        """(agrees, what is to be said)"""
        try:
            before, again, after = (self.losses(row[which], row["arguments"]) for which in ("before", "before", "after"))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return False, str(error)
        return judge(row["numbers"], before, again, after)


def apart(one, other):
    """The largest difference, as a part of the loss."""
    return max(abs(a - b) / max(abs(a), 1e-12) if a != b else 0 for a, b in zip(one, other))


def judge(numbers, before, again, after):
    if not before or len(before) != len(after) or not all(map(math.isfinite, before + after)):
        return False, "%s: losses %s, edited %s" % (numbers, before, after)
    noise, differs = apart(before, again), apart(before, after)
    agrees = differs <= max(noise, TOLERANCE[numbers])
    return agrees, "%s: %d losses, %.6g to %.6g, differ by %.2g of the loss (twice the same program: %.2g; allowed: %.2g)" % (
        numbers, len(before), before[0], before[-1], differs, noise, max(noise, TOLERANCE[numbers]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--torch", help="folder that has PyTorch (default: with --real, what python3 finds, else the wheel of check.py)")
    for option in ("--make", "--real", "--rehearse"):
        parser.add_argument(option, metavar="FOLDER")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not smaller_card.set_torch(args):
        return 0
    if args.make:
        return make(args)
    with open(os.path.join(args.real or args.rehearse, "losses.json"), encoding="utf-8") as file:
        rows = [row for row in json.load(file) if not args.names or any(name in row["after"] for name in args.names)]
    good = 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-losses-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        bench = Bench(args, folder)
        for row, (agrees, text) in zip(rows, pool.map(bench.compare, rows)):
            good += agrees
            print("%s %-44s %s" % ("ok    " if agrees else "not ok", row["after"], text), flush=True)
    print("%d of %d agree" % (good, len(rows)))
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
