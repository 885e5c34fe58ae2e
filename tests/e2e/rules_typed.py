# SPDX-License-Identifier: Apache-2.0
"""Programs that are in no file: `python -c TEXT` and a script on standard input. Their text is the user's own."""
import harness
from toolbox import same

START = "import cudrv, dataclasses\ncudrv.init()\n"


def where(box, *argv):
    run = box.under([box.python, *argv])
    found = box.verdict(run)
    same(found["cause"], "oom-request-too-large", "cause")
    at = found["where"]
    return at["file"], at["line"], at.get("function"), at.get("source"), bool(at.get("library"))


def rule__a_program_on_the_command_line_is_the_users_own(box):
    direct = START + "cudrv.alloc(1 << 40)"
    same(where(box, "-c", direct), ("<string>", 3, "<module>", "cudrv.alloc(1 << 40)", False), "a statement")
    nested = START + "@dataclasses.dataclass\nclass Size:\n    n: int\n    def take(self):\n        cudrv.alloc(self.n)  # takes\n\nSize(1 << 40).take()"
    line = "cudrv.alloc(self.n)  # takes"
    same(where(box, "-c", nested), ("<string>", 7, "take", line, False), "a method")
    same(where(box, "-u", "-X", "dev", "-Wignore", "-Bc", nested), ("<string>", 7, "take", line, False), "after options")
    same(where(box, "-c" + nested), ("<string>", 7, "take", line, False), "in the word of the option")
    made = START + "take = lambda n: [cudrv.alloc(n) for n in [n]]\ntake(1 << 40)"
    same(where(box, "-c", made)[:2], ("<string>", 3), "a lambda")
    quiet = START + "def work():\n    cudrv.alloc(1 << 40)\ntry:\n    work()\nexcept cudrv.CudaError:\n    import os; os._exit(1)"
    same(where(box, "-c", quiet)[:3], ("<string>", 4, "work"), "without an exception at the end")


def rule__code_made_by_a_program_on_the_command_line_is_not_the_users_own(box):
    line = "exec('\\n\\ndef take(n):\\n    cudrv.alloc(n)\\ntake(1 << 40)')"
    same(where(box, "-c", START + line)[:3], ("<string>", 3, "<module>"), "exec")
    line = "@dataclasses.dataclass\nclass Size:\n    n: int = 0\n    at: int = dataclasses.field(default_factory=lambda: cudrv.alloc(1 << 40))\n\nSize()"
    same(where(box, "-c", START + line)[:3], ("<string>", 6, "<lambda>"), "a factory that the user wrote")
    line = "class Size:\n    n: int\n    def __setattr__(self, name, n):\n        cudrv.alloc(n)\n\nSize = dataclasses.dataclass(Size)\nSize(1 << 40)"
    same(where(box, "-c", START + line)[:3], ("<string>", 6, "__setattr__"), "called from generated code")
    line = "class Size:\n    n: int\n\nSize.__setattr__ = lambda self, name, n: cudrv.alloc(n)\nSize = dataclasses.dataclass(Size)\nSize(1 << 40)"
    same(where(box, "-c", START + line)[:3], ("<string>", 6, "<lambda>"), "a lambda called from generated code")


def rule__code_made_by_a_script_is_not_a_line_of_the_users(box):
    script = box.script(START + "scope = {'cudrv': cudrv}\nexec('def take(n):\\n    cudrv.alloc(n)\\n', scope)\nscope['take'](1 << 40)\n")
    same(where(box, *script[1:])[1:3], (5, "<module>"), "exec in a script")


def rule__a_script_on_standard_input_is_the_users_own(box):
    for argv in ([], ["-"]):
        script = box.script(START + "def take(n):\n    cudrv.alloc(n)\ntake(1 << 40)\n")[1]
        folder = box.scratch + "/recording" + "".join(argv)
        with open(script, encoding="utf-8") as stdin:
            run = harness.Run([box.cuwhy, "run", "--json", "--gpu", "sim:tiny", "--out", folder, "--", box.python, *argv],
                              box.env(), 60, stdin=stdin)
        run.folder = folder
        at = box.verdict(run)["where"]
        same((at["file"], at["line"], at["function"], bool(at.get("library"))), ("<stdin>", 4, "take", False), "where")


def rule__a_program_on_the_command_line_longer_than_what_is_kept_of_it_is_the_users_own(box):
    text = START + "# %s\n" % ("x" * 1200) + "def take(n):\n    cudrv.alloc(n)\ntake(1 << 40)\n"
    same(where(box, "-c", text), ("<string>", 5, "take", None, False), "a line whose text is not known")


def rule__what_starts_a_worker_is_not_the_users_own(box):
    script = box.script("import multiprocessing, cudrv\nif __name__ == '__main__':\n    cudrv.init()\n"
                        "    multiprocessing.set_start_method('spawn')\n"
                        "    worker = multiprocessing.Process(target=cudrv.alloc, args=(1 << 40,))\n"
                        "    worker.start()\n    worker.join()\n    raise SystemExit(worker.exitcode)\n")
    run = box.under(script)
    at = box.verdict(run)["where"]
    assert at["file"] != "<string>", at
