#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuwhy and others predict of the memory of the same programs, beside what an H200 needed (h200.jsonl).

    tests/torch/estimators.py [--build build] [--torch FOLDER[:FOLDER…]] [--limit SECONDS] [--json FILE] [program…]

--torch: folders with PyTorch and the estimators (pip install --target FOLDER --no-deps accelerate torch-kitsune psutil pyyaml); one that
is not there is skipped, and the table says so. No network and no GPU: each estimate is a process of its own on the simulated H200,
so that `.cuda()` works. No program is changed. What each estimator is given, and what had to be done for it, is said where it is called.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
# One of each kind, and the one whose tensors the dry run misses by most (llama_adapters).
PROGRAMS = ["decoder_adamw", "decoder_checkpointed", "generation", "resnet50", "vit", "lstm", "llama_checkpointed", "llama_adapters",
            "bert_padded", "diffusion_ema"]


# --- one estimate: a process of its own ----------------------------------------------------------


def of_cuwhy(program):
    """The dry run itself: the program runs, and PyTorch tells its peaks."""
    import torch
    program()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), "used": total - free,
            "version": "the dry run"}


def of_memtracker(program):
    """The program runs with fake tensors. Done for it: fake models cannot be moved (`.cuda()`, `.to()`), so their parameters are replaced;
    and MemTracker follows one call of a model only, so its notes on modules are dropped before the next."""
    import torch
    from torch import nn
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    tracker, called, moved = MemTracker(), nn.Module.__call__, {}

    def call(module, *args, **words):
        moved.clear()
        tracked = tracker._mod_tracker
        if module in tracker.memory_tracking and not tracked.is_bw and tracked.parents == {"Global"}:
            tracker.reset_mod_stats()
        return called(module, *args, **words)

    def move(module, function, recurse=True):
        for child in module.children():
            child._apply(function)
        for table in (module._parameters, module._buffers):
            for name, old in table.items():
                if old is None:
                    continue
                if old not in moved:    # tied weights stay tied
                    new = function(old.detach())
                    new = nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new
                    moved[old] = moved[new] = new
                table[name] = moved[old]
        return module

    nn.Module.__call__, nn.Module._apply = call, move
    with FakeTensorMode(), tracker:
        program()
    return {"allocated": max(snapshot["Total"] for device, snapshot in tracker.get_tracker_snapshot("peak").items() if device.type == "cuda"),
            "version": "PyTorch " + torch.__version__}


class Seen(Exception):
    """Enough of the program has run."""


def look_at(program):
    """The models that the program calls until its first backward (or until it calls one again), each with the shape of what it is given,
    the optimizer, and whether autocast is on: what a user would have to type."""
    import torch
    from torch import nn
    models, seen, depth, called, made = [], {"optimizer": None, "mixed": False}, 0, nn.Module.__call__, torch.optim.Optimizer.__init__

    def call(module, *args, **words):
        nonlocal depth
        if not depth:
            if any(module is model for model, _ in models):
                raise Seen
            tensors = [t for t in [*args, *words.values()] if isinstance(t, torch.Tensor)]
            models.append((module, tuple(tensors[0].shape)))
            seen["mixed"] |= torch.is_autocast_enabled("cuda")
        depth += 1
        try:
            return called(module, *args, **words)
        finally:
            depth -= 1

    def make(optimizer, params, defaults):
        made(optimizer, params, defaults)
        seen["optimizer"] = type(optimizer).__name__.lower() + ("_momentum" if defaults.get("momentum") else "")

    def stop(*args, **words):
        raise Seen

    nn.Module.__call__, torch.optim.Optimizer.__init__, torch.Tensor.backward = call, make, stop
    try:
        program()
    except Seen:
        pass
    finally:
        nn.Module.__call__, torch.optim.Optimizer.__init__ = called, made
    return models, seen["optimizer"], seen["mixed"]


def of_accelerate(program):
    """`accelerate estimate-memory` takes names of the Hub only; its arithmetic is applied to the program's own models."""
    import accelerate
    import torch
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes
    models, optimizer, mixed = look_at(program)
    total = 0
    for model, _ in models:
        half = mixed or next(model.parameters()).dtype in (torch.float16, torch.bfloat16)
        size = calculate_maximum_sizes(model.to("meta").float())[0]    # the command, too, begins with float32
        total += max(estimate_training_usage(size, "float16" if half else "float32").values()) if optimizer else size // (2 if half else 1)
    return {"allocated": total, "version": "accelerate " + accelerate.__version__}


def of_kitsune(program):
    """predict_memory() of each model, with the shape of its first argument, its own type, and the optimizer. Models of transformers are given on
    the meta device, as kitsune makes them itself, others on the CPU."""
    import kitsune
    from kitsune.predict import predict_memory
    models, optimizer, _ = look_at(program)
    total = 0
    for model, shape in models:
        model = model.to("meta" if type(model).__module__.startswith("transformers") else "cpu")
        total += predict_memory(model, shape[1:], batch_size=shape[0], dtype=next(model.parameters()).dtype, optimizer=optimizer or "none",
                                training=optimizer is not None).total_bytes
    return {"reserved": total, "version": "torch-kitsune " + kitsune.__version__}


# Name, what makes the estimate, and the figures of the H200 that it is an estimate of. Kitsune adds 15 % for the allocator's overhead.
ESTIMATORS = {"cuwhy": (of_cuwhy, ("allocated", "used")), "MemTracker": (of_memtracker, ("allocated",)),
              "accelerate": (of_accelerate, ("allocated",)), "torch-kitsune": (of_kitsune, ("reserved",))}
MISSING = {"accelerate": "accelerate", "torch-kitsune": "kitsune"}


def one(name, program):
    import torch
    import fidelity
    torch.manual_seed(0)
    if MISSING.get(name):
        try:
            __import__(MISSING[name])
        except ImportError as error:
            print(json.dumps({"missing": str(error)}))
            return 0
    began = time.time()
    try:
        function = fidelity.listed()[program]
        os.environ.update(function.settings)    # before CUDA is used for the first time
        found = ESTIMATORS[name][0](function)
    except Exception as error:      # whatever it is, the table shows it
        found = {"error": "%s: %s" % (type(error).__name__, (str(error).strip().splitlines() or [""])[0][:200])}
    print(json.dumps({**found, "seconds": round(time.time() - began, 1)}), flush=True)
    return 0


# --- the table -----------------------------------------------------------------------------------


def estimate(options, name, program):
    words = [os.path.join(options.build, "cuwhy"), "run", "--gpu", "sim:h200", "--", sys.executable, os.path.abspath(__file__), "one", name, program]
    env = {**os.environ, "PYTHONPATH": options.torch}
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "did not end within %d s" % options.limit}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}


def error(found, truth, figure):
    """In percent; None without an estimate."""
    return round(100 * (found[figure] / truth[figure] - 1), 1) if figure in found else None


def cell(percent):
    return "-" if percent is None else "%+.1f %%" % percent if percent else "0.0 %"


def columns():
    return [(name, figure) for name, (_, figures) in ESTIMATORS.items() for figure in figures]


def print_table(results, truths):
    print("| program | allocated | %s |" % " | ".join("%s, %s" % column for column in columns()))
    print("| --- | --- |%s" % (" --- |" * len(columns())))
    for program, row in results.items():
        print("| %s | %.0f MiB | %s |" % (program, truths[program]["allocated"] / MIB,
              " | ".join(cell(error(row[name], truths[program], figure)) for name, figure in columns())))
    for word, choose in (("mean of errors", lambda list: sum(list) / len(list)), ("largest error", max)):
        print("| %s | | %s |" % (word, " | ".join(summary(results, truths, column, choose) for column in columns())))
    print()


def summary(results, truths, column, choose):
    name, figure = column
    errors = [error(row[name], truths[program], figure) for program, row in results.items()]
    sizes = [abs(percent) for percent in errors if percent is not None]
    return "%.1f %%, %d of %d" % (choose(sizes), len(sizes), len(results)) if sizes else "-"


def print_notes(results):
    for name in ESTIMATORS:
        found = {program: row[name] for program, row in results.items()}
        versions = {row["version"] for row in found.values() if "version" in row}
        print("%s: %s" % (name, ", ".join(versions) or "no estimate"))
        missing = [row["missing"] for row in found.values() if "missing" in row]
        if missing:
            print("  SKIPPED: not installed (%s)" % missing[0])
        for program, row in found.items():
            if "error" in row:
                print("  %s: %s" % (program, row["error"]))


def main():
    if sys.argv[1:2] == ["one"]:
        sys.path.insert(0, HERE)
        return one(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", default=os.environ.get("PYTHONPATH", ""), help="folders with PyTorch, transformers and the estimators")
    parser.add_argument("--limit", type=int, default=900, help="seconds for one estimate")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    options = parser.parse_args()
    sys.path.insert(0, HERE)
    import fidelity
    truths = fidelity.read(os.path.join(HERE, "h200.jsonl"))
    results = {}
    for program in options.programs or PROGRAMS:
        results[program] = {}
        for name in ESTIMATORS:
            results[program][name] = estimate(options, name, program)
            print("%s, %s: %s" % (program, name, json.dumps(results[program][name])), file=sys.stderr, flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as out:
                json.dump(results, out, indent=1)
    print("%s, Python %s, %d cores; measured on an NVIDIA H200, PyTorch %s\n" % (platform.machine(), platform.python_version(),
          os.cpu_count(), truths[PROGRAMS[0]]["torch"]))
    print_table(results, truths)
    print_notes(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
