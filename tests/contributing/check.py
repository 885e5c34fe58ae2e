# SPDX-License-Identifier: Apache-2.0
"""Does what CONTRIBUTING.md says in a copy of the tree: adds a cause (one file) and a kind of input (one folder and one row), builds,
and asks cuwhy; deletes the cause again. Nothing else may need an edit."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CAUSE = "wish-launch"

# a log, and a note of the same failure: the same assertion
LOG = """a.cu:12: void wish(int): block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.
RuntimeError: CUDA error: device-side assert triggered
"""
NOTE = """cuwhy-note
error.code = 710
error.name = CUDA_ERROR_ASSERT
error.log = wish 424242
assert.file = a.cu
assert.line = 12
"""


def copy_tree(build, tree):
    """Sources and objects keep their times, so that make builds only what the additions touch."""
    for part in ("Makefile", "VERSION", "include", "kb", "src", "tools", "docs", "web"):
        source = os.path.join(ROOT, part)
        (shutil.copytree if os.path.isdir(source) else shutil.copy2)(source, os.path.join(tree, part))
    for program in (os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "tests/gpu/*/*.py"))):  # causes show some of them
        os.makedirs(os.path.join(tree, os.path.dirname(program)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, program), os.path.join(tree, program))
    shutil.copytree(os.path.join(build, "obj"), os.path.join(tree, "build", "obj"), ignore=shutil.ignore_patterns("recorder", "sim"))
    shutil.copytree(os.path.join(build, "host"), os.path.join(tree, "build", "host"))
    for made in ("kb.text", "kb.blob"):
        shutil.copy2(os.path.join(build, made), os.path.join(tree, "build"))


def run_make(tree, goal="build/cuwhy"):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", "-j2", "CHARTS=no", goal], cwd=tree, env=env, capture_output=True, text=True)


def make(tree):
    """Returns how many files were compiled."""
    done = run_make(tree)
    if done.returncode:
        raise SystemExit("contributing: the copy does not build\n" + done.stdout + done.stderr)
    return sum(line.startswith("  CC") for line in done.stdout.splitlines())


def write(tree, name, text):
    path = os.path.join(tree, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def explain(tree, *paths):
    done = subprocess.run([os.path.join(tree, "build", "cuwhy"), "explain", "--json", *paths], capture_output=True, text=True)
    return json.loads(done.stdout)


def example_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read().split("## Example\n")[1]
    return "".join(line[4:] + "\n" for line in text.splitlines())


def add_cause(tree):
    shutil.copy(os.path.join(HERE, CAUSE + ".md"), os.path.join(tree, "kb", "causes"))


def add_input(tree):
    shutil.copy(os.path.join(HERE, "note", "input.c"), os.path.join(tree, "src", "find", "input_note.c"))


def add_row(tree, above):
    with open(os.path.join(ROOT, "src", "find", "inputs.def"), encoding="utf-8") as f:
        rows = f.read()
    write(tree, "src/find/inputs.def", rows.replace(above, "INPUT(note)\n" + above))


def refused_row(tree, above):
    """What the build says about a row at a wrong place; "" if it builds."""
    add_row(tree, above)
    done = run_make(tree)
    return done.stderr if done.returncode else ""


def over_cause(tree):
    """Another cause names the new one; returns its file."""
    name = "kb/causes/kernel-trap.md"
    with open(os.path.join(tree, name), encoding="utf-8") as f:
        text = f.read()
    write(tree, name, text.replace("\nwhen ", "\nexplains: %s\nwhen " % CAUSE, 1))
    return name


def check(tree):
    """(claim, is it true) pairs."""
    example = write(tree, "example.txt", example_of(os.path.join(HERE, CAUSE + ".md")))
    log, note = write(tree, "log.txt", LOG), write(tree, "a.note", NOTE)
    before = explain(tree, example)
    yield "without the cause the example has another answer", before["cause"] != CAUSE
    add_cause(tree)
    yield "a cause is a file: no C is compiled", make(tree) == 0
    yield "a cause is a file: its example is explained by it", explain(tree, example)["cause"] == CAUSE
    add_input(tree)
    yield "a row above the recording does not build, and the message says where it may go", \
        "must stay the first row; put the new one below it" in refused_row(tree, "INPUT(recording)")
    yield "a row below the machine does not build either", "must stay the last row; put the new one above it" in refused_row(tree, "#undef INPUT")
    add_row(tree, "INPUT(machine)")
    yield "an input is a folder and a row: few files are compiled again", make(tree) < 40
    yield "an input is a folder and a row: its facts reach the rules", explain(tree, note)["cause"] == CAUSE
    alone, joined = explain(tree, log), explain(tree, log, note)
    said = json.dumps(joined["evidence"])
    yield "an input is a folder and a row: it is joined with others that tell of the same failure", \
        alone["cause"] != CAUSE and joined["cause"] == CAUSE and not joined["others"] and "joined with a note" in said
    text = subprocess.run([os.path.join(tree, "build", "cuwhy"), "explain", note], capture_output=True, text=True)
    yield "an input is a folder and a row: the text answers likewise", "certain: the log says: wish 424242" in text.stdout
    namer = over_cause(tree)
    os.remove(os.path.join(tree, "kb", "causes", CAUSE + ".md"))
    said = run_make(tree, "build/completions/cuwhy.fish").stderr
    yield "a deleted cause that another names stops the build, with both files and what to do", \
        "%s line" % namer in said and "kb/causes/%s.md" % CAUSE in said and "hint: remove" in said and "bug" not in said
    shutil.copy2(os.path.join(ROOT, namer), os.path.join(tree, namer))
    os.utime(os.path.join(tree, namer))
    make(tree)
    yield "a deleted cause is gone", explain(tree, example)["cause"] != CAUSE


def main():
    build = os.path.abspath(sys.argv[1])
    failed = passed = 0
    with tempfile.TemporaryDirectory() as tree:
        copy_tree(build, tree)
        make(tree)
        for claim, holds in check(tree):
            passed += holds
            failed += not holds
            if not holds:
                print("not ok - " + claim)
    print("contributing: %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
