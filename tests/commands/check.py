#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command that a fix of kb/causes can print, and every page that shows it.

    tests/commands/check.py [BUILD]

Commands are taken from `cuwhy explain --json CAUSE`, filled in with the sample machine (kb/samples.def). Shell commands parse, their
programs and options are in tools/advised.py, and those that run on any machine are run in a sandbox; variables and their values are in
kb/variables.def; wheels are in kb/compat_torch.def; `cuwhy` commands run for real; Python compiles and runs with PyTorch on the
simulated GPU, where PyTorch is installed.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests"), HERE]
import advice  # noqa: E402
import advised  # noqa: E402
import snippets  # noqa: E402

CAUSES = sorted(name[:-3] for name in os.listdir(os.path.join(ROOT, "kb", "causes")))
PLACEHOLDER = re.compile(r"\{\{|\{[a-z_]+\.[a-z_.]+[}: ]|\{(floor|ceil|max|min|abs)\(|:bytes\}|:n\}")
RULE = re.compile(r"known\(|sign\.\w|threshold\.\w|cuda_set\.|&& *!|!known| && [a-z]+\.[a-z]|\b(text|machine|torch|oom|gpu)\.is\b")
# indexes of PyTorch that kb/compat_torch.def, a table of CUDA wheels, does not list
OTHER_INDEXES = {"rocm6.4": "PyTorch 2.8 and 2.9 for ROCm, RELEASE.md of PyTorch"}
SECONDS = 3
wrong = []


def claim(what, problems):
    print("%s - %s" % ("ok" if not problems else "not ok", what), flush=True)
    for problem in problems:
        print("    " + problem)
    wrong.extend(problems)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


# ---- the pages ---------------------------------------------------------------------------------------

def ask(cuwhy, *words):
    return subprocess.run([cuwhy, "explain", *words], capture_output=True, text=True).stdout


def page_problems(name, text):
    """What a reader should not see. Programs and examples are as they are."""
    return ["%s: %s" % (name, line.strip()) for line in text.split("\n")
            if PLACEHOLDER.search(line) or RULE.search(line)]


def doc_problems(cause):
    text = read("docs", "causes", cause + ".md")
    found = page_problems("docs/causes/%s.md" % cause, text.split("## A program that shows it")[0])
    fences = re.findall(r"^ *```(.*)$", text, re.M)
    found += ["docs/causes/%s.md: a fence of no language" % cause for opens in fences[::2] if not opens]
    found += ["docs/causes/%s.md: a fence that does not end" % cause] * (len(fences) % 2)
    return found


def check_pages(cuwhy, pages):
    found = []
    for cause, page in pages.items():
        found += page_problems(cause, page["text"].split("\nA program that shows it\n")[0])
        if not page["definition"] or not page["title"]:
            found.append("%s has no definition" % cause)
        if not page["fix"] and cause not in ("none",) and not re.search(r"^## Fix\n\s*(##|\Z)", read("kb", "causes", cause + ".md"), re.M):
            found.append("%s advises nothing" % cause)
        if page["example"] and not page["example"]["title"]:
            found.append("the example of %s has no answer" % cause)
    claim("what `cuwhy explain CAUSE` prints is written for people", found)
    claim("docs/causes has no placeholders, no rules, and names the language of all code", [x for c in CAUSES for x in doc_problems(c)])
    rules = ask(cuwhy, "--rules", "oom-capacity")
    claim("`--rules` prints the rules", [] if "oom.request" in rules and "known(" in rules else ["it does not: %s" % rules[:200]])


# ---- shell commands ----------------------------------------------------------------------------------

def steps(command):
    """The simple commands of a shell command, as words; `$(…)` counts as one, and its inside as another."""
    out = []
    inside = r"\$\(((?:[^()]|\([^()]*(?:\([^()]*\))?[^()]*\))*)\)"
    for inner in re.findall(inside, command):
        out += steps(inner)
    command = re.sub(inside, "VALUE", command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    words = []
    for word in list(lexer) + [";"]:
        if word and set(word) <= set(";&|"):
            out.append(words)
            words = []
        elif word not in ("do", "done", "2>&1", "2>", "1"):
            words.append(word)
    return [words for words in out if words and words[0] != "for"]


def without_prefix(words):
    """The words from the program on, and the variables before it."""
    variables = []
    while words and (re.match(r"[A-Za-z_]\w*=", words[0]) or words[0] in ("sudo", "export")):
        if words[0] not in ("sudo", "export"):
            variables.append(words[0])
        words = words[1:]
    return words, variables


def option_problems(words):
    if words[0] not in advised.PROGRAMS:
        return ["'%s' is not in tools/advised.py" % words[0]]
    known = advised.PROGRAMS[words[0]][1]
    if known is None:
        return []
    found, known = [], known.split()
    for word in words[1:]:
        if word in ("python", "--args"):  # what follows is another program's
            break
        name = word.split("=")[0]
        if word.startswith("-") and len(word) > 1 and name not in known and name[:2] + "*" not in known and not re.match(r"-\d+$", word):
            found.append("'%s' of '%s' is not in tools/advised.py" % (word, words[0]))
    return found


def parse_problems(command):
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    return ["bash: %s" % done.stderr.strip()] if done.returncode or done.stderr else []


def shell_problems(command):
    found = parse_problems(command)
    try:
        parts = steps(command.replace("# ", "#").split("    #")[0])
    except ValueError as why:
        return found + [str(why)]
    for words in parts:
        words, variables = without_prefix(words)
        found += [problem for one in variables for problem in variable_problems(*one.split("=", 1))]
        if words:
            found += option_problems(words)
        if words and words[0] == "unset":
            found += [problem for name in words[1:] for problem in variable_problems(name, None)]
    return found


# ---- variables ---------------------------------------------------------------------------------------

ROWS = {name: (kind, values) for name, kind, values in
        re.findall(r'^VAR\((\w+), "[^"]*", (\w+), "([^"]*)"', read("kb", "variables.def"), re.M)}
NAMES = set(re.findall(r"^NAME\((\w+),", read("kb", "variables.def"), re.M))
ALLOC = set(re.findall(r"^KEY\((\w+),", read("kb", "alloc_conf.def"), re.M))


def value_is_good(kind, values, value):
    if kind in ("INT", "NUMBER"):
        low, high = values.split("..")
        return bool(re.match(r"-?[\d.]+$", value)) and float(low) <= float(value) <= float(high or "inf")
    if kind == "WORD":
        return value.lower() in values.lower().split("|")
    if kind == "LIST":
        return set(value.lower().split(",")) <= set(values.lower().split("|"))
    if kind == "ALLOC":
        return all(pair.split(":")[0] in ALLOC for pair in value.split(","))
    if kind == "ARCHS":
        return value == "VALUE" or bool(re.match(r"(VALUE|\d+\.\d)(\+PTX)?$", value))
    return True


def variable_problems(name, value):
    if name in NAMES or name == "PATH":
        return []
    if name not in ROWS:
        return ["the variable %s is not in kb/variables.def" % name]
    kind, values = ROWS[name]
    return [] if value is None or value_is_good(kind, values, value) else ["%s=%s is not a value of kb/variables.def" % (name, value)]


# ---- wheels ------------------------------------------------------------------------------------------

WHEELS = set(re.findall(r'^COMPAT_WHEEL\("([\d.]+)", "(\w+)"', read("kb", "compat_torch.def"), re.M))


def wheel_problems(command):
    found = []
    for step in advice.steps(command):
        if "pip install" not in step:
            continue
        said = subprocess.run(["bash", "-c", "echo " + step.split("pip install", 1)[1].split("#")[0]], capture_output=True, text=True).stdout
        index = re.search(r"download\.pytorch\.org/whl/(\w[\w.]*)", said)
        version = re.search(r"torch==(\d+\.\d+)", said)
        if index and index.group(1) in OTHER_INDEXES:
            continue
        if index and index.group(1) not in {wheel[1] for wheel in WHEELS}:
            found.append("no PyTorch has the index %s" % index.group(1))
        elif version and version.group(1) not in {wheel[0] for wheel in WHEELS}:
            found.append("there is no PyTorch %s" % version.group(1))
        elif index and version and (version.group(1), index.group(1)) not in WHEELS:
            found.append("PyTorch %s has no wheels for %s" % (version.group(1), index.group(1)))
    return found


# ---- running them ------------------------------------------------------------------------------------

def programs_of(command):
    return {words[0] for step in steps(command) for words in [without_prefix(step)[0]] if words}


def runs_here(command):
    return all(advised.PROGRAMS.get(name, ("?",))[0] == advised.HERE and (name == "cuwhy" or shutil.which(name) or name in
               ("export", "unset", "ulimit", "python")) for name in programs_of(command)) and "sudo" not in command


def in_sandbox(folder, command, path, seconds=SECONDS):
    """Nothing but the programs of the list can be reached."""
    env = {"PATH": path, "HOME": folder, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9", "USER": "nobody", "LC_ALL": "C.UTF-8",
           "CUWHY_CACHE": folder, "XDG_STATE_HOME": folder}
    try:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, errors="replace")
    except subprocess.TimeoutExpired:
        return []       # `free -s 5` goes on
    if done.returncode in (126, 127) or re.search(r"invalid option|unrecognized option|unknown option|illegal option|[Uu]sage:|command not found", done.stderr):
        return ["%s\n        ends with %d: %s" % (command, done.returncode, done.stderr.strip()[-300:])]
    return []


def sandbox_path(folder, cuwhy):
    """A folder of links to the programs that may run."""
    path = os.path.join(folder, "bin")
    os.mkdir(path)
    for name, (needs, _, _) in advised.PROGRAMS.items():
        target = cuwhy if name == "cuwhy" else sys.executable if name == "python" else shutil.which(name)
        if needs == advised.HERE and target and name != "torchrun":
            os.symlink(target, os.path.join(path, name))
    for name in ("sh", "bash", "python3"):
        if shutil.which(name):
            os.symlink(shutil.which(name), os.path.join(path, name))
    return path


FULL = """import ctypes
cu, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
context = ctypes.c_void_p()
cu.cuInit(0)
cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cu.cuCtxSetCurrent(context)
raise SystemExit(cu.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1 << 30)) or cu.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1 << 40)))
"""
RANKS = """import os
open("rank" + os.environ["RANK"], "w").close()
"""


def record(cuwhy, folder):
    """A recording to name where a command says RECORDING."""
    subprocess.run([cuwhy, "run", "--gpu", "sim:rtx3060", "--out", "RECORDING", "--", sys.executable, "-c", FULL], capture_output=True, cwd=folder)
    return os.path.isdir(os.path.join(folder, "RECORDING"))


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(os.path.join(folder, name), 0o755)


def check_torchrun(cuwhy, commands):
    """Both ranks start, with cuwhy in front of torchrun."""
    torch = snippets.torch_folder()
    if torch is None:
        print("ok # SKIP torchrun is not run: PyTorch is not installed")
        return
    problems = []
    for command in [x for x in commands if "torchrun" in x and ("..." in x or "--standalone" in x) and "nvidia-smi" not in x]:
        with tempfile.TemporaryDirectory() as folder:
            path = sandbox_path(folder, cuwhy)
            write(path, "torchrun", '#!/bin/sh\nPYTHONPATH=%s exec python -m torch.distributed.run "$@"\n' % shlex.quote(torch))
            write(folder, "train.py", RANKS)
            # a wheel without NVIDIA's packages needs the stand-ins
            problems += in_sandbox(folder, "cuwhy run --gpu sim:rtx3060 --writes=real " + re.sub("^cuwhy run ", "", runnable(command)), path, 60)
            problems += ["%s\n        rank %d did not start" % (command, rank) for rank in (0, 1)
                         if not os.path.exists(os.path.join(folder, "rank%d" % rank))]
    claim("every torchrun that is advised starts its ranks", problems)


def runnable(command):
    """`...` stands for the program's own words."""
    command = command.replace("torchrun ... train.py", "torchrun --standalone --nproc-per-node=2 train.py")
    command = command.replace("--nproc-per-node=2 ...", "--standalone --nproc-per-node=2 train.py")
    return command.replace("python ...", "python train.py")


def check_running(cuwhy, commands):
    problems, ran = [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = sandbox_path(folder, cuwhy)
        write(folder, "train.py", "print(1)\n")
        if not record(cuwhy, folder):
            problems.append("'cuwhy run' makes no recording")
        for command in commands:
            needs_torch = "import " in command or "torchrun" in command
            if not runs_here(command) or needs_torch or any(x.search(command) for x in advice.DESTROYS):
                continue
            ran += 1
            problems += in_sandbox(folder, runnable(command), path, SECONDS * 10 if "cuwhy" in command else SECONDS)
    claim("%d of %d shell commands run in a sandbox; the others need a GPU, root or another service (tools/advised.py)" %
          (ran, len(commands)), problems)


def cuwhy_problems(cuwhy, words):
    """The options exist, and `cuwhy run` has a program that it can start."""
    known = subprocess.run([cuwhy, words[1], "-h"], capture_output=True, text=True).stdout
    found = ["cuwhy has no command '%s'" % words[1]] if "usage:" not in known else []
    rest = words[2:]
    while rest and rest[0].startswith("-"):
        option, equals, _ = rest[0].partition("=")
        if not re.search(re.escape(option) + r"(?![-\w])", known):
            found.append("cuwhy %s has no option '%s'" % (words[1], option))
        takes = not equals and re.search(re.escape(option) + r" [A-Z]", known)
        rest = rest[2 if takes else 1:]
    if words[1] == "run" and (not rest or rest[0] not in ("python", "torchrun")):
        found.append("'cuwhy run' needs a program: %s" % " ".join(words))
    return found


def check_shell(cuwhy, commands):
    problems = []
    for command in commands:
        problems += ["%s\n        %s" % (command, x) for x in shell_problems(command) + wheel_problems(command)]
        for words in steps(command) if "cuwhy" in command else []:
            words = without_prefix(words)[0]
            if words and words[0] == "cuwhy":
                problems += ["%s\n        %s" % (command, x) for x in cuwhy_problems(cuwhy, words)]
            elif "cuwhy" in words:
                problems.append("%s\n        cuwhy does not come first: torchrun would take it for a Python file" % command)
    claim("%d shell commands parse; programs, options, variables, values and wheels exist" % len(commands), problems)
    check_running(cuwhy, commands)
    check_torchrun(cuwhy, commands)


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
    cuwhy = os.path.join(build, "cuwhy")
    pages = {cause: json.loads(ask(cuwhy, "--json", cause)) for cause in CAUSES}
    commands = sorted({fix["command"] for page in pages.values() for fix in page["fix"] if fix["command"]})
    said = {}
    for command in commands:
        said.setdefault(advised.language(command), []).append(command)
    check_pages(cuwhy, pages)
    lines = sorted({line for command in said["sh"] for line in command.split("\n")})
    check_shell(cuwhy, lines)
    asked = sorted({found for line in lines for found in re.findall(r'python -c "([^"]*)"', line)})
    snippets.check(claim, cuwhy, said["python"], asked)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
