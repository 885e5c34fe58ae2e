#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes of source code that FIX advises, made and run: none of them may break a training.

    tests/torch/fixes.py [--build build] [--torch 2.11.0] [--generated 40] [--seed 300] [name…]

Runs the programs of fix_traps, of memory_strangers and of tests/gpu/memory on a simulated card, with --generated also mistakes of
memory_mistakes that keep graphs. Each change in FIX is made in a copy. The copy must run on the same card to its end: a backward over
something that was detached would raise. Those of fix_traps run on the CPU, too, before and after, with the small sizes of their `#@cpu`:
all parameters must be the same in the end. `# fix: edit KIND` in them says that a change is expected (kept: detached, backward: in each
iteration, no_grad), `# fix: words` that there must be none. No other code in FIX may detach, disable gradients or run backward, but for
gradient accumulation where the program trains.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check  # noqa: E402
import memory  # noqa: E402
import memory_programs  # noqa: E402

LIMIT = 300
PLACE = re.compile(r"^(\S.*):(\d+)$")
ENDS_GRAPHS = re.compile(r"\bdetach\(|\.item\(|no_grad|inference_mode|\.backward\(|\.data\b")
MISTAKES = ("kept_losses", "running_average", "summed_window", "monitored", "statistics_module", "hooked", "predictions", "validation", "one_pass",
            "carried_hidden", "large_validation")


# --- programs ----------------------------------------------------------------------------------


class Program:
    def __init__(self, name, files, causes=None, expected=None, gpu=None):
        self.name, self.files, self.causes, self.expected, self.gpu = name, files, causes, expected, gpu
        self.main = next(iter(files))


def trap(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    label = re.search(r"^# label: (.*)$", text, re.M).group(1).split()
    return Program("traps/" + os.path.basename(path)[:-3], {os.path.basename(path): text}, label, re.search(r"^# fix: (.*)$", text, re.M).group(1).split())


def plain(path):
    with open(path, encoding="utf-8") as file:
        return Program("memory/" + os.path.basename(path)[:-3], {os.path.basename(path): file.read()}, gpu="sim:h200")


def programs(options, card):
    folder = os.path.join(HERE, "fix_traps")
    for name in sorted(os.listdir(folder)):
        yield trap(os.path.join(folder, name))
    for name in ("graph_retention.py", "eval_grad.py", "validation.py"):
        yield plain(os.path.join(HERE, "..", "gpu", "memory", name))
    for program in memory.strangers((), card):
        yield Program("strangers/" + program.name, program.files)
    for number in range(options.generated):
        seed = 3 * (options.seed + number)
        made = memory_programs.generate(seed, card, MISTAKES[number % len(MISTAKES)])
        yield Program("generated/%s" % made.name, made.files)


# --- changes -----------------------------------------------------------------------------------


def changes(command):
    """[(file, line, lines that go, lines that come)] of the text of a change, None if it is none."""
    found = []
    for line in command.splitlines():
        place = PLACE.match(line)
        if place:
            found.append((place.group(1), int(place.group(2)), [], []))
        elif not found or line[:2] not in ("- ", "+ ", "  "):
            return None
        elif line[:2] != "  ":
            found[-1][2 if line[:2] == "- " else 3].append(line[2:])
    return found or None


def changed(files, made):
    """The files with the changes. A line that goes must be the one that is there."""
    files = dict(files)
    for file, number, old, new in sorted(made, key=lambda change: -change[1]):
        name = os.path.basename(file)
        lines = files[name].splitlines()
        there = lines[number - 1]
        indent = there[:len(there) - len(there.lstrip())]
        if old:
            assert len(old) == 1 and there.split("#")[0].strip() == old[0].strip(), "%s:%d is '%s', not '%s'" % (name, number, there.strip(), old[0])
        lines[number - 1:number] = [indent + line for line in new] + ([] if old else [there])
        files[name] = "\n".join(lines) + "\n"
    return files


# --- on the simulated card ----------------------------------------------------------------------


class Runs:
    def __init__(self, build, folder, gpu):
        self.cuwhy, self.gpu = os.path.abspath(os.path.join(build, "cuwhy")), gpu
        self.env = dict(os.environ, PYTHONPATH=folder)

    def run(self, program, files):
        with tempfile.TemporaryDirectory(prefix="cuwhy-fixes-") as folder:
            for name, text in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([self.cuwhy, "run", "--gpu", program.gpu or self.gpu, "--json", "--out", os.path.join(folder, "out"), "--", sys.executable, program.main],
                                  env=self.env, cwd=folder, timeout=LIMIT, capture_output=True, text=True, errors="replace", check=False)
        found = [line for line in done.stderr.splitlines() if line.startswith('{"schema"')]
        return done.returncode, json.loads(found[-1]) if found else {}, done.stderr


def judge(runs, program):
    """Complaints, and the changes that were made: (name of the kind, text, files)."""
    status, verdict, stderr = runs.run(program, program.files)
    wrong, made = [], []
    if status == 0:
        return (["it did not fail"] if program.causes else []), [], verdict
    if program.causes and verdict.get("cause") not in program.causes:
        wrong.append("%s %s" % (verdict.get("certainty"), verdict.get("cause")))
    for item in verdict.get("fix") or ():
        command = item.get("command")
        edits = changes(command) if command else None
        if edits:
            kind = "no_grad" if "no_grad" in command else "backward" if ".backward(" in command else "kept"
            files = changed(program.files, edits)
            made.append((kind, command, files))
            status, after, stderr = runs.run(program, files)
            if status:
                wrong.append("with %s it ends with %s, %s: %s" % (kind, status, after.get("cause"), (stderr.strip().splitlines() or [""])[-1][:200]))
        elif command and ENDS_GRAPHS.search(command) and not ("chunk(" in command and (verdict.get("cause") == "oom-capacity")):
            wrong.append("code that may break a training: %s" % command)
    if program.expected:
        kinds = {kind for kind, _, _ in made}
        if program.expected[0] == "edit" and not set(program.expected[1:]) <= kinds:
            wrong.append("changes %s, not %s" % (sorted(kinds), program.expected[1:]))
        if program.expected[0] == "words" and kinds:
            wrong.append("changes %s, where there should be none" % sorted(kinds))
    return wrong, made, verdict


# --- on the CPU ---------------------------------------------------------------------------------

ON_CPU = '''
import json, runpy, sys
import torch
torch.set_default_dtype(torch.float64)
torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *words: self
for before, after in json.load(open(sys.argv[1])):
    ends = []
    for path in (before, after):
        torch.manual_seed(1)
        try:
            globals_ = runpy.run_path(path, run_name="__main__")
        except Exception as error:
            print(json.dumps([after, "%s: %s: %s" % (path, type(error).__name__, error)]))
            break
        models = [v for _, v in sorted(globals_.items()) if isinstance(v, torch.nn.Module)]
        ends.append([p.detach() for model in models for p in model.parameters()])
    else:
        same = len(ends[0]) == len(ends[1]) and all(torch.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(*ends))
        print(json.dumps([after, None if same and ends[0] else "%d parameters, not the same" % len(ends[0])]))
'''


def small(text):
    """The program for the CPU: `A, B = 65536, 40  #@cpu 8, 5` has the small sizes."""
    return re.sub(r"^(\s*)(.*?) = .*#@cpu (.*)$", r"\1\2 = \3", text, flags=re.M).replace('device="cuda"', 'device="cpu"')


def on_cpu(runs, pairs):
    """Complaints by name, of (name, files, main, files after). PyTorch's wheel needs the stand-ins of a dry run even there."""
    with tempfile.TemporaryDirectory(prefix="cuwhy-fixes-") as place:
        todo, names = [], {}
        for number, (name, files, main, after) in enumerate(pairs):
            paths = [os.path.join(place, "%d_%s.py" % (number, which)) for which in ("before", "after")]
            for path, text in zip(paths, (files[main], after[main])):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(small(text))
            todo.append(paths)
            names[paths[1]] = name
        with open(os.path.join(place, "todo"), "w", encoding="utf-8") as file:
            json.dump(todo, file)
        with open(os.path.join(place, "run.py"), "w", encoding="utf-8") as file:
            file.write(ON_CPU)
        done = subprocess.run([runs.cuwhy, "run", "--gpu", runs.gpu, "--out", os.path.join(place, "out"), "--", sys.executable,
                               os.path.join(place, "run.py"), os.path.join(place, "todo")], env=runs.env, capture_output=True, text=True, check=False)
        answers = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
        return [(name, answers.get(path, done.stderr[-500:])) for path, name in names.items() if answers.get(path, "it did not run")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch", default="2.11.0")
    parser.add_argument("--gpu", default="sim:rtx3060")
    parser.add_argument("--generated", type=int, default=0)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, dest="jobs")
    parser.add_argument("--show", action="store_true", help="print each change")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def main():
    options = arguments()
    folder, why = check.install(options.torch)
    if not folder:
        print("fixes: SKIPPED: PyTorch %s cannot be installed: %s" % (options.torch, why))
        return 0
    runs = Runs(options.build, folder, options.gpu)
    chosen = [p for p in programs(options, memory.WRITTEN_FOR) if not options.names or any(n in p.name for n in options.names)]
    wrong, pairs, n_changes = 0, [], 0

    def one(program):
        try:
            return judge(runs, program)
        except (subprocess.TimeoutExpired, AssertionError) as error:
            return [str(error)], [], {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for program, (complaints, made, verdict) in zip(chosen, pool.map(one, chosen)):
            wrong += bool(complaints)
            n_changes += len(made)
            print("%-6s %-50s %-7s %-26s %s%s" % ("WRONG" if complaints else "ok", program.name, verdict.get("certainty") or "", verdict.get("cause"),
                  "+".join(kind for kind, _, _ in made) or "words", "".join("; " + c for c in complaints)), flush=True)
            for _, text, files in made:
                if options.show:
                    print(text)
                if program.expected:
                    pairs.append((program.name, program.files, program.main, files))
    for name, complaint in on_cpu(runs, pairs) if pairs else ():
        wrong += 1
        print("WRONG  %-50s on the CPU: %s" % (name, complaint))
    print("%d programs, %d changes made and run, %d of them on the CPU, %d wrong" % (len(chosen), n_changes, len(pairs), wrong))
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
