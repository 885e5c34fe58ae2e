#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory by module, of programs with real PyTorch on the simulated GPU, against what PyTorch itself says.

    tests/torch/modules.py [--build build] [--torch FOLDER] [--quick] [name…]

Of each program of tests/torch/modules, at its peak and at its end: the modules' bytes, with those of no module, add up to what PyTorch had
allocated, to the byte; no path is named that the model does not have; parameters and buffers are those of their module, to the byte. Prints how
much has a module.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check  # noqa: E402

QUICK = ("words", "shared", "two_models")


def recorded(options, name, folder):
    """What the program said, and the modules at two moments."""
    out = os.path.join(folder, name)
    env = dict(os.environ, PYTHONPATH=options.torch, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([os.path.join(options.build, "cuwhy"), "run", "--gpu", "sim:rtx4090", "--out", out, "--", sys.executable,
                           os.path.join(HERE, "modules", name + ".py")], env=env, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"allocated"')]
    if not lines:
        raise AssertionError("it failed: " + done.stderr[-600:])
    shown = {}
    for at in ("end", "peak"):
        got = subprocess.run([os.path.join(options.build, "cuwhy"), "memory", "--json", "--at", at, out], capture_output=True, text=True)
        (shown[at],) = json.loads(got.stdout)["devices"]
    return json.loads(lines[0]), shown


def wrong_paths(said, modules):
    """A path is one of a model of its class, if there are several models."""
    models = {model["model"]: set(model["paths"]) for model in said["models"]}
    anywhere = set().union(*models.values())
    return [m["path"] for m in modules if m["path"] and m["path"] not in models.get(m["model"], anywhere)]


def wrong_parameters(said, modules):
    held = {}
    for m in modules:
        if m["path"] is not None and "parameters" in m["kinds"]:
            held[m["path"]] = held.get(m["path"], 0) + m["kinds"]["parameters"]
    truth = {}
    for model in said["models"]:
        for path, size in model["parameters"].items():
            truth[path] = truth.get(path, 0) + size
    return {path: (size, held.get(path, 0)) for path, size in truth.items() if held.get(path, 0) != size}


def judge(said, shown):
    """What is wrong, and the share of the bytes at the peak that have a module."""
    for at, want in (("end", said["allocated"]), ("peak", said["peak"])):
        modules = shown[at]["modules"]
        total = sum(m["bytes"] for m in modules)
        if total != want or any(sum(m["kinds"].values()) != m["bytes"] for m in modules):
            return "at %s: modules add up to %d, PyTorch says %d" % (at, total, want), 0
        wrong = wrong_paths(said, modules)
        if wrong:
            return "at %s: no such module: %s" % (at, ", ".join(wrong)), 0
    if any(model["parameters"] for model in said["models"]):
        wrong = wrong_parameters(said, shown["end"]["modules"])
        if wrong:
            return "parameters (true, shown): %s" % wrong, 0
    modules = shown["peak"]["modules"]
    known = sum(m["bytes"] for m in modules if m["path"] is not None)
    return "", known / sum(m["bytes"] - m["kinds"].get("workspaces", 0) for m in modules)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch", help="a folder with PyTorch (default: the one of check-torch)")
    parser.add_argument("--quick", action="store_true", help="only " + ", ".join(QUICK))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    if not options.torch:
        options.torch, why = check.install("2.11.0")
        if not options.torch:
            print("modules: skipped, " + why)
            return 0
    names = options.names or (QUICK if options.quick else sorted(name[:-3] for name in os.listdir(os.path.join(HERE, "modules"))
                                                                 if name.endswith(".py") and name != "truth.py"))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-modules-") as folder:
        for name in names:
            try:
                wrong, share = judge(*recorded(options, name, folder))
            except AssertionError as error:
                wrong, share = str(error), 0
            failed += bool(wrong)
            print("%-8s%s: %s" % ("FAILED" if wrong else "ok", name, wrong or "%.0f %% in modules" % (100 * share)), flush=True)
    print("modules: %d of %d programs as PyTorch says" % (len(names) - failed, len(names)))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
