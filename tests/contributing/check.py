#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows every recipe of CONTRIBUTING.md in a copy of the tree: exactly the files that a recipe lists are touched, what was added works, and
the tests that look at all of its kind still pass. Deletes the cause again. All additions share one build, without optimization."""
import contextlib
import fnmatch
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CAUSE = "wish-launch"
PLAIN = ("build", "build-san", ".git", "__pycache__", "node_modules")
OWN = (".o", ".a", ".so")       # compilers and linkers make a new file of these, so that links to the old one are safe

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
FAILS = """import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, name = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(64)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
cuda.cuDeviceGetName(name, 64, device)
print(name.value.decode())
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
cuda.cuCtxSetCurrent(context)
assert cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 50)) == 0
"""


class Tree:
    """The copy."""

    def __init__(self, folder, build):
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CUWHY_RULES_FIRED", "BUILT_BEFORE")}
        self.env.update(CFLAGS="-O0 -g0", CHARTS="no", PYTHONDONTWRITEBYTECODE="1", CUWHY_WRITES_MODE="real", CC=os.environ.get("CC", "cc"))
        for name in os.listdir(ROOT):
            self.copy(os.path.join(ROOT, name), os.path.join(folder, name), shutil.ignore_patterns(*PLAIN)) if name not in PLAIN else None
        self.copy(build, os.path.join(folder, "build"), lambda top, names: [n for n in names if (top == build and n in ("check", "demo", "frameworks", "wheels", "web", "aarch64"))
                                                                            or n.startswith("tmp") or n.endswith(".whl") or n == "cuwhy-static"
                                                                            or (os.path.basename(top) == "tests" and n not in ("unit", "many"))])

    @staticmethod
    def copy(source, target, ignore):
        """Files keep their times, so that make builds only what the additions touch."""
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, ignore=ignore, copy_function=lambda a, b: (os.link if a.endswith(OWN) else shutil.copy2)(a, b))
        else:
            shutil.copy2(source, target)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def insert(self, name, text, before=None, after=None):
        """Beside the first line that begins so."""
        lines = self.read(name).splitlines(True)
        at = next((i for i, line in enumerate(lines) if line.startswith(before or after)), None)
        if at is None:
            raise SystemExit("contributing: no line of %s begins with %r" % (name, before or after))
        lines.insert(at if before else at + 1, text)
        self.write(name, "".join(lines))

    def replace(self, name, old, new):
        text = self.read(name)
        if old not in text:
            raise SystemExit("contributing: %s has no %r" % (name, old))
        self.write(name, text.replace(old, new, 1))

    def run(self, *words, **more):
        return subprocess.run(words, cwd=self.folder, env=dict(self.env, **more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)

    def make(self, *goals):
        done = self.run("make", "-j2", *goals)
        if done.returncode:
            raise SystemExit("contributing: the copy does not build\n" + done.stdout)
        return sum(line.startswith("  CC") for line in done.stdout.splitlines())

    def refused(self, *goals):
        """What the build says; "" if it builds."""
        done = self.run("make", "-j2", *(goals or ("build/cuwhy",)))
        return done.stdout if done.returncode else ""

    def explain(self, *names):
        done = subprocess.run([self.path("build/cuwhy"), "explain", "--json", *map(self.path, names)], env=self.env, capture_output=True, text=True, check=False)
        return json.loads(done.stdout)

    def state(self):
        """{file: when it was written}, of what is in the repository."""
        found = {}
        for top, folders, names in os.walk(self.folder):
            folders[:] = [f for f in folders if f not in PLAIN and f != "scratch"]
            for name in names:
                path = os.path.join(top, name)
                found[os.path.relpath(path, self.folder)] = (os.lstat(path).st_mtime_ns, os.lstat(path).st_ino)
        return found


def changed(before, after):
    return {name for name in set(before) | set(after) if before.get(name) != after.get(name)}


# the recipes, as somebody follows them who reads nothing else

def add_cause(tree):
    shutil.copy(os.path.join(HERE, CAUSE + ".md"), tree.path("kb/causes"))
    tree.write("tests/text/own/%s-1.txt" % CAUSE, "# cause: %s\nRuntimeError: CUDA error: unspecified launch failure\nlaunch number 424242\n" % CAUSE)


def add_fact(tree):
    tree.insert("src/case/case.def", 'FACT(error_letters, "error.letters", NUMBER, "error.letters", "letters of the error\'s name")\n', after="FACT(error_name,")
    tree.insert("src/find/failure/observe.c", "\tfact_set_number(f, FACT_error_letters, (double)strlen(cuda_error_name(code)));\n", after="\tfact_set_number(f, FACT_error_code, code);")
    tree.insert("docs/json.md", "| `error.letters` | number? | letters of its name |\n", after="| `error.name` |")
    tree.insert("tests/unit/test_facts.c", """static void facts__letters_are_counted(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_fail_launch(&b, 1, tb_stack(&b, "train.py:50:main", NULL), 0, G(1, 70000, 1), G(1, 1, 1), 0);
	j = judge(&b, 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "error"), "letters")), strlen(field(json_object_get(j, "error"), "name")));
	json_decref(j);
}

""", before="int main(")
    tree.insert("tests/unit/test_facts.c", "\t\tcmocka_unit_test(facts__letters_are_counted),\n", after="\tconst struct CMUnitTest tests[] = {")


def add_datum(tree):
    minor = int(re.search(r"#define CW_MINOR\t(\d+)", tree.read("include/cuwhy/format.h")).group(1))
    tree.replace("include/cuwhy/format.h", "#define CW_MINOR\t%d" % minor, "#define CW_MINOR\t%d" % (minor + 1))
    last = re.search(r"^struct cw_header \{.*?^\};", tree.read("include/cuwhy/format.h"), re.M | re.S).group(0)
    tree.replace("include/cuwhy/format.h", last, last[:-2] + "\tuint64_t wishes;\t\t/* how many there were */\n};")
    tree.insert("src/recorder/rec_start.c", "\th->wishes = 424242;\n", after="\th->forked = forked_from != 0;")
    tree.insert("src/case/case.def", 'FACT(process_wishes, "process.wishes", NUMBER, "process.wishes", "how many wishes there were")\n', after="FACT(process_sim,")
    tree.insert("src/find/failure/observe.c", "\tif (h->wishes)\n\t\tfact_set_number(f, FACT_process_wishes, (double)h->wishes);\n", after="\tfact_set_flag(f, FACT_process_sim, h->sim);")
    tree.insert("docs/json.md", "| `process.wishes` | number? | how many wishes there were |\n", after="| `process.pid` |")
    tree.insert("docs/develop/format.md", "\nFrom 2.%d on, `wishes` in the header says how many wishes there were.\n" % (minor + 1), after="name, type, shape, device; never contents.")
    tree.write("tests/e2e/rules_json.py", tree.read("tests/e2e/rules_json.py") + '''

def rule__wishes_are_recorded(box):
    verdict = box.verdict(box.under(box.script(%r)))
    same(verdict["process"]["wishes"], 424242, "wishes")
''' % FAILS)


def add_function(tree):
    name = "src/sim/curand/curand.c"
    tree.write(name, tree.read(name) + """
STANDIN(int, curandWish, (int *wishes))
{
	*wishes = 424242;
	return 0;
}
""")
    tree.insert("tests/unit/test_standins.c", """SIM_TEST(curand__wishes, "tiny")
{
	void *lib = standin_open("libcurand.so.10");
	int n = 0;

	FUNCTION(lib, curandWish, (int *));
	CHECK(curandWish(&n) == 0 && n == 424242);
}

""", before="int main(")
    tree.insert("tests/unit/test_standins.c", "\t\tcmocka_unit_test(curand__wishes),\n", after="\tconst struct CMUnitTest tests[] = {")


def add_gpu(tree):
    tree.write("src/sim/cuda/sim_models.def", tree.read("src/sim/cuda/sim_models.def") + 'SIM_MODEL(wish9000, "NVIDIA Wish 9000", 9, 0, 83036160, 539648, 132,\n'
               "\t  233472, 232448, 2048, 32, 16, 51200, 5120, 1980, 2619, 1)\n")


def change_sentence(tree):
    tree.replace("kb/causes/kernel-trap.md", "- [!sign.line_found] or under compute-sanitizer, which names the kernel", "- [!sign.line_found] or ask compute-sanitizer, which names the kernel")


def add_input(tree):
    shutil.copy(os.path.join(HERE, "note", "input.c"), tree.path("src/find/input_note.c"))
    shutil.copy(os.path.join(HERE, "note", "test.c"), tree.path("tests/unit/test_note.c"))
    tree.insert("src/find/inputs.def", "INPUT(note)\n", before="INPUT(machine)")


RECIPES = {"Add a cause": add_cause, "Add a fact": add_fact, "Add a recorded datum": add_datum, "Add a stand-in function": add_function, "Add a GPU": add_gpu,
           "Change a sentence": change_sentence, "Add a kind of input": add_input}


def listed(recipe):
    """The files that a recipe names: what is in backquotes before the colon of each of its steps, <…> standing for anything."""
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as f:
        sections = re.split(r"^##+ ", f.read(), flags=re.M)
    text = next((s for s in sections if s.startswith(recipe + "\n")), None)
    if text is None:
        raise SystemExit("contributing: CONTRIBUTING.md has no recipe %r" % recipe)
    steps = re.findall(r"^\d+\. ([^:]*):", text, re.M)
    return [re.sub(r"<[^>]*>", "*", name) for step in steps for name in re.findall(r"`([^`]+)`", step)]


def are(files, patterns):
    """Every file is one that is listed, and every one that is listed is among them."""
    return all(any(fnmatch.fnmatch(f, p) for p in patterns) for f in files) and all(any(fnmatch.fnmatch(f, p) for f in files) for p in patterns)


def follow(tree):
    """Claims about what the recipes touch; the tree has all of the additions then."""
    begin, by_hand = tree.state(), {}
    for recipe, steps in RECIPES.items():
        before = tree.state()
        steps(tree)
        by_hand[recipe] = changed(before, tree.state())
    tree.make("parts")
    made_before = tree.state()
    tree.make("docs")
    made = changed(made_before, tree.state())
    yield "the build changes nothing in the repository", changed(begin, made_before) == set().union(*by_hand.values())
    for recipe, files in by_hand.items():
        patterns = listed(recipe)
        mine = files | {name for name in made if any(fnmatch.fnmatch(name, p) for p in patterns)}
        yield "%s: exactly the files that the recipe lists (%s) are touched (%s)" % (recipe, ", ".join(patterns), ", ".join(sorted(mine))), are(mine, patterns)
    others = {name for name in made if not any(fnmatch.fnmatch(name, p) for r in RECIPES for p in listed(r))}
    yield "`make docs` writes only what recipes list, not %s" % ", ".join(sorted(others)), not others


def check_rows(tree):
    """An input's row at a wrong place is refused, in words that help."""
    rows = tree.read("src/find/inputs.def")
    for above, said in (("INPUT(recording)", "must stay the first row; put the new one below it"), ("#undef INPUT", "must stay the last row; put the new one above it")):
        tree.write("src/find/inputs.def", rows.replace("INPUT(note)\n", "").replace(above, "INPUT(note)\n" + above))
        yield "Add a kind of input: a row beside %s does not build, and the message says where it may go" % above, said in tree.refused()
    tree.write("src/find/inputs.def", rows)


def check_works(tree):
    tree.write("scratch/example.txt", example_of(os.path.join(HERE, CAUSE + ".md")))
    tree.write("scratch/log.txt", LOG)
    tree.write("scratch/a.note", NOTE)
    tree.write("scratch/fails.py", FAILS)
    yield "Add a cause: its example is explained by it", tree.explain("scratch/example.txt")["cause"] == CAUSE
    yield "Add a kind of input: its facts reach the rules", tree.explain("scratch/a.note")["cause"] == CAUSE
    alone, joined = tree.explain("scratch/log.txt"), tree.explain("scratch/log.txt", "scratch/a.note")
    yield "Add a kind of input: it is joined with others that tell of the same failure", \
        alone["cause"] != CAUSE and joined["cause"] == CAUSE and not joined["others"] and "joined with a note" in json.dumps(joined["evidence"])
    said = tree.run("build/cuwhy", "explain", "scratch/a.note").stdout
    yield "Add a kind of input: the text answers likewise", "certain: the log says: wish 424242" in said
    done = tree.run("build/cuwhy", "run", "--gpu", "sim:wish9000", "--out", "scratch/recording", sys.executable, "scratch/fails.py")
    yield "Add a GPU: programs see it (%s)" % done.stdout, "NVIDIA Wish 9000" in done.stdout
    with open(tree.path("scratch/recording/verdict.json"), encoding="utf-8") as f:
        verdict = json.load(f)
    yield "Add a recorded datum: it is in the verdict", verdict["process"].get("wishes") == 424242
    yield "Add a fact: it is in the verdict", verdict["error"].get("letters") == len(verdict["error"]["name"])
    yield "Change a sentence: it is printed", "or ask compute-sanitizer" in tree.run("build/cuwhy", "explain", "kernel-trap").stdout


# what looks at all causes, facts, GPUs, …: nothing else needs an edit
TESTS = ("unit/facts/", "unit/fields/", "unit/note/", "unit/standins/curand", "unit/trace/", "unit/rules/", "unit/messages/", "text/own/%s-1" % CAUSE, "text/examples/" + CAUSE,
         "cli/main/", "cli/run/gpu-", "cli/fit/", "e2e/rule__wishes", "e2e/rule__the_keys_of_facts", "e2e/rule__documented_keys_exist")
GATES = (("tools/check_source.py", "layers"), ("tools/check_source.py", "columns"), ("tools/check_source.py", "writers"), ("tools/check_source.py", "causes"),
         ("tools/check_docs.py", "build"), ("tools/render_causes.py", "--check", "build"))


def check_others(tree):
    units = os.path.exists(tree.path("build/tests/unit"))
    if not units:
        print("contributing: SKIPPED: the unit tests of the copy, as there is no libcmocka-dev")
    done = tree.run(sys.executable, "tests/run", *[test for test in TESTS if units or not test.startswith("unit/")])
    yield "the tests that look at all causes, facts, GPUs and inputs pass: %s" % done.stdout[-3000:], done.returncode == 0 and " 0 failed" in done.stdout
    for gate in GATES:
        done = tree.run(sys.executable, *gate)
        yield "%s finds nothing: %s" % (" ".join(gate), done.stdout), done.returncode == 0 and not done.stdout.strip()


def example_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read().split("## Example\n")[1]
    return "".join(line[4:] + "\n" for line in text.splitlines())


def check_deleted(tree):
    namer = "kb/causes/kernel-trap.md"
    text = tree.read(namer)
    tree.write(namer, text.replace("\nwhen ", "\nexplains: %s\nwhen " % CAUSE, 1))
    os.remove(tree.path("kb/causes/%s.md" % CAUSE))
    said = tree.refused("build/completions/cuwhy.fish")
    yield "a deleted cause that another names stops the build, with both files and what to do", \
        "%s line" % namer in said and "kb/causes/%s.md" % CAUSE in said and "hint: remove" in said and "bug" not in said
    tree.write(namer, text)
    yield "a cause is a file: no C is compiled without it", tree.make("build/cuwhy") == 0
    yield "a deleted cause is gone", tree.explain("scratch/example.txt")["cause"] != CAUSE


def main():
    build = os.path.abspath(sys.argv[1])
    failed = passed = 0
    with tempfile.TemporaryDirectory(dir=build) as folder:     # beside the objects, so that they can be links
        tree = Tree(folder, build)
        for check in (follow, check_rows, check_works, check_others, check_deleted):
            if check is check_works:
                tree.make("parts")
            for claim, holds in check(tree):
                passed += bool(holds)
                failed += not holds
                if not holds:
                    print("not ok - " + claim)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("contributing: %d passed, %d failed (%d recipes, %d s of processor time)" % (passed, failed, len(RECIPES), used.ru_utime + used.ru_stime))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
