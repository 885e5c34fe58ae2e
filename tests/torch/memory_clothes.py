# SPDX-License-Identifier: Apache-2.0
"""How programs are written: the same steps as a script, a function, a class with callbacks, a small framework in a second file, …

dress() turns a plan (memory_mistakes.py) into files. What the plan calls state ($model, $opt, lists that are kept) is a global, a local
of main() or an attribute, as the clothes have it.
"""
from string import Template

LOCALS = (dict(x="x", y="y", out="out", loss="loss"), dict(x="inputs", y="targets", out="outputs", loss="loss"),
          dict(x="batch_x", y="batch_y", out="pred", loss="batch_loss"), dict(x="data", y="target", out="output", loss="loss"),
          dict(x="samples", y="labels", out="scores", loss="objective"))
DEEPEST = 600       # calls in calls
FILES = ("train.py", "main.py", "run_experiment.py", "fit.py", "finetune.py")


def indent(lines, by=1):
    return ["    " * by + line if line else line for line in lines]


class Writer:
    """A program under construction: its scope decides what a state's name is."""

    def __init__(self, plan, dice):
        self.plan, self.dice = plan, dice
        self.locals = dict(dice.choice(LOCALS), device=dice.choice(('"cuda"', "DEVICE", "device")), batch=dice.choice(("BATCH", "BATCH_SIZE")))
        self.prefix = ""            # of states: "self." in a class
        self.in_main = False
        self.data_style = dice.choice(("function", "generator", "class") if not plan.growing else ("generator", "class"))
        self.count = str(plan.turns)

    def names(self):
        states = {name: self.prefix + name for name, _ in self.plan.state + self.plan.kept}
        return {**states, **self.locals, "step": "step"}

    def text(self, lines):
        names = self.names()
        return [Template(line).substitute(names) for line in lines]

    # --- parts ------------------------------------------------------------------------------

    def header(self):
        plan, lines = self.plan, []
        modules = sorted(i for i in plan.imports if i.startswith("import "))
        others = sorted(i for i in plan.imports if i.startswith("from ") and i not in plan.own_imports)
        lines += modules + others + ([""] if modules or others else [])
        lines += ["import torch", "import torch.nn as nn", "import torch.nn.functional as F", ""]
        own = sorted(plan.own_imports)
        lines += own + ([""] if own else [])
        if self.locals["device"] != '"cuda"':
            lines.append('%s = torch.device("cuda")' % self.locals["device"])
        lines.append("%s = %d" % (self.locals["batch"], plan.batch))
        return lines

    def classes(self):
        return [line + ("  #@model" if line.strip() else "") for line in self.plan.task.classes.splitlines()]

    def data(self):
        """The lines that define where batches come from."""
        x, y = self.text(self.plan.task.data())
        made = ["a = %s  #@data" % x, "b = %s" % y, "return a, b"] if len(x + y) > 100 else ["return %s, %s  #@data" % (x, y)]
        if self.data_style == "function":
            return ["def load_batch():"] + indent(made)
        made[-1] = made[-1].replace("return", "yield")
        number = "_"
        if self.plan.growing:
            number, made = "number", ["rows = %s * (1 + number)" % self.locals["batch"]] + made
        if self.data_style == "generator":
            return ["def batches(count):", "    for %s in range(count):" % number] + indent(made, 2)
        return ["class SyntheticData:", "    def __init__(self, length):", "        self.length = length", "", "    def __len__(self):",
                "        return self.length", "", "    def __iter__(self):", "        for %s in range(self.length):" % number] + indent(made, 3)

    def iterable(self, count=None):
        count = count or self.count
        return {"function": "(load_batch() for _ in range(%s))", "generator": "batches(%s)", "class": "SyntheticData(%s)"}[self.data_style] % count

    def draw(self):
        """State and expression that give one batch at a time."""
        if self.data_style == "function":
            return [], "load_batch()"
        return ["stream = iter(%s)" % self.iterable("10**9")], "next(stream)"

    def pair(self):
        return "%(x)s, %(y)s" % self.locals

    def setup(self, kept=True):
        plan = self.plan
        states = plan.state + (plan.kept if kept else [])
        return self.text(["%s%s = %s" % (self.prefix, name, expression) for name, expression in states] + plan.start)

    def work(self, keep=True):
        """The lines of one turn."""
        plan = self.plan
        forward = plan.forward
        if plan.context:
            forward = ["with %s:" % plan.context] + indent(forward)
        lines = forward + plan.update + (plan.keep if keep else [])
        return self.text(lines)

    def changed(self):
        """Statements that let a function assign to states outside of it."""
        if self.prefix or not self.plan.assigned:
            return []
        return ["%s %s" % ("nonlocal" if self.in_main else "global", ", ".join(self.plan.assigned))]

    def value(self):
        return self.plan.value and self.text([self.plan.value])[0]

    def report(self):
        value = self.value()
        return ["if step %% %d == 0:" % self.dice.choice((10, 50, 100)), "    print(step, %s)" % value] if value and self.dice.random() < 0.4 else []


def scoped(writer, body):
    """The body at module level or in main()."""
    if writer.in_main:
        return ["def main():"] + indent(body) + ["", "", 'if __name__ == "__main__":', "    main()"]
    return body


def spaced(*blocks):
    lines = []
    for block in blocks:
        if block:
            lines += (["", ""] if lines else []) + block
    return lines


def script(writer, loop):
    """A loop with everything in it."""
    dice, draws = writer.dice, []
    writer.in_main = dice.random() < 0.5
    body = writer.work() + writer.report()
    if dice.random() < 0.25:
        body = ["try:"] + indent(body) + ["except KeyboardInterrupt:", "    break"]
    elif dice.random() < 0.2:
        body = ['with torch.profiler.record_function("step"):'] + indent(body)
    if loop == "enumerate":
        body = ["for step, (%s) in enumerate(%s):" % (writer.pair(), writer.iterable())] + indent(body)
    elif loop == "epochs":
        body = ["for epoch in range(3):", "    for step, (%s) in enumerate(%s):" % (writer.pair(), writer.iterable())] + indent(body, 2)
    else:
        draws, one = writer.draw()
        body = ["%s = %s" % (writer.pair(), one)] + body
        if loop == "while":
            body = ["step = 0", "while step < %s:" % writer.count] + indent(body + ["step += 1"])
        elif loop == "forever":
            body = ["step = 0", "while True:"] + indent(body + ["step += 1", "if step >= %s:" % writer.count, "    break"])
        elif loop == "count":
            writer.plan.imports.add("import itertools")
            body = ["for step in itertools.count():"] + indent(body + ["if step + 1 == %s:" % writer.count, "    break"])
        else:
            body = ["for step in range(%s):" % writer.count] + indent(body)
    return scoped(writer, writer.setup() + draws + [""] + body + writer.text(writer.plan.after))


def function(writer, loop):
    """One function takes a step; something calls it again and again."""
    dice, plan = writer.dice, writer.plan
    writer.in_main = dice.random() < 0.3
    name = dice.choice(("train_step", "run_step", "one_batch", "process") if plan.trains else ("predict", "score", "one_batch", "process"))
    draws, one = writer.draw()
    value = writer.value()
    inside = writer.changed() + ["%s = %s" % (writer.pair(), one)] + writer.work() + (["return " + value] if value else ["return step"])
    step = ["def %s(step):" % name] + indent(inside)
    calls = {
        "for": ["for step in range(%s):" % writer.count, "    %s(step)" % name],
        "map": ["for value in map(%s, range(%s)):" % (name, writer.count), "    last = value"],
        "list_map": ["values = list(map(%s, range(%s)))" % (name, writer.count)],
        "comprehension": ["values = [%s(step) for step in range(%s)]" % (name, writer.count)],
        "sum": ["total_value = sum(%s(step) for step in range(%s))" % (name, writer.count)],
        "recursion": ["def run(step):", "    if step == %d:" % min(plan.turns, DEEPEST), "        return", "    %s(step)" % name, "    run(step + 1)", "", "",
                      "run(0)"],
        "thread": ["with concurrent.futures.ThreadPoolExecutor(1) as pool:", "    for step in range(%s):" % writer.count,
                   "        pool.submit(%s, step).result()" % name],
        "generator": ["def turns():", "    for step in range(%s):" % writer.count, "        yield %s(step)" % name, "", "",
                      "for number, value in enumerate(turns()):", "    last = value"],
    }[loop]
    if loop == "thread":
        plan.imports.add("import concurrent.futures")
    if writer.in_main:
        calls = [line for i, line in enumerate(calls) if line or (i and calls[i - 1])]
        return scoped(writer, writer.setup() + draws + [""] + step + [""] + calls + writer.text(plan.after))
    return spaced(writer.setup() + draws, step, calls + writer.text(plan.after))


def trainer(writer, loop):
    """A class with fit(); what is kept may be kept by a callback, and the loop may be in a second file."""
    dice, plan = writer.dice, writer.plan
    writer.prefix = "self."
    back = loop == "callbacks"
    setup = writer.setup(kept=not back)
    methods = ["def __init__(self):"] + indent((["super().__init__()"] if loop == "framework" else []) + setup)
    local = writer.locals
    inside = writer.work(keep=not back)
    arguments = "self, step, %s" % writer.pair()
    value = writer.value()
    if back:
        inside += ["return %s" % ", ".join(plan.shown(local))]
    elif value:
        inside += ["return " + value]
    step, fit_name = ("training_step", "fit") if plan.trains or loop == "framework" else ("predict_step", "predict")
    methods += ["", "def %s(%s):" % (step, arguments)] + indent(inside)
    name = dice.choice(("Trainer", "Learner", "Experiment") if plan.trains else ("Predictor", "Scorer", "Experiment"))
    if loop == "framework":
        plan.files["engine.py"] = ENGINE
        plan.own_imports.add("from engine import Loop")
        return spaced(["class %s(Loop):" % name] + indent(methods), ["job = %s()" % name, "job.run(%s)" % writer.iterable()] +
                      after(writer, "job"))
    if back:
        shown = plan.shown(local)
        fit = ["for step, (%s) in enumerate(batches):" % writer.pair(), "    %s = self.%s(step, %s)" % (", ".join(shown), step, writer.pair()),
               "    for callback in callbacks:", "        callback.on_step_end(step, %s)" % ", ".join(shown)]
        methods += ["", "def %s(self, batches, callbacks=()):" % fit_name] + indent(fit)
        extra = ["class %s:" % dice.choice(("History", "Monitor", "Collector"))]
        extra += indent(["def __init__(self):"] + indent(writer.text(["self.%s = %s" % item for item in plan.kept])) +
                        ["", "def on_step_end(self, step, %s):" % ", ".join(shown)] + indent(writer.text(plan.keep)))
        run = ["%s().%s(%s, callbacks=[%s()])" % (name, fit_name, writer.iterable(), extra[0][6:-1])]
        return spaced(["class %s:" % name] + indent(methods), extra, run)
    fit = ["for step, (%s) in enumerate(batches):" % writer.pair(), "    self.%s(step, %s)" % (step, writer.pair())]
    if loop == "epochs":
        fit = ["for epoch in range(epochs):"] + indent(fit)
    methods += ["", "def %s(self, batches%s):" % (fit_name, ", epochs=1" if loop == "epochs" else "")] + indent(fit)
    return spaced(["class %s:" % name] + indent(methods), ["job = %s()" % name, "job.%s(%s)" % (fit_name, writer.iterable())] + after(writer, "job"))


def after(writer, job):
    """What follows the loop, outside of the class."""
    writer.prefix = job + "."
    return writer.text(writer.plan.after)


def closure(writer, _):
    """optimizer.step(closure), as LBFGS needs it."""
    plan, dice = writer.plan, writer.dice
    writer.in_main = dice.random() < 0.5
    if dice.random() < 0.3 and plan.task.params < 4 << 20:
        plan.state = [(n, "torch.optim.LBFGS($model.parameters(), lr=0.1, max_iter=2, history_size=2)" if n == "opt" else e) for n, e in plan.state]
    draws, one = writer.draw()
    update = writer.text([line for line in plan.update if "$opt.step" not in line])
    forward = writer.text(plan.forward)
    assign = ["nonlocal " + ", ".join(plan.assigned)] if plan.assigned and writer.in_main else \
        ["global " + ", ".join(plan.assigned)] if plan.assigned else []
    inner = ["def closure():"] + indent(assign + forward + update + writer.text(plan.keep) + writer.text(["return $loss"]))
    body = ["%s = %s" % (writer.pair(), one), ""] + inner + ["", "opt.step(closure)"]
    body = ["for step in range(%s):" % writer.count] + indent(body)
    return scoped(writer, writer.setup() + draws + [""] + body + writer.text(plan.after))


ENGINE = '''class Loop:
    """Runs training_step over batches."""

    def __init__(self):
        self.step = 0

    def before(self):
        pass

    def training_step(self, step, x, y):
        raise NotImplementedError

    def run(self, batches):
        self.before()
        for x, y in batches:
            self.training_step(self.step, x, y)
            self.step += 1
'''

STYLES = [(script, loop) for loop in ("for", "while", "enumerate", "epochs", "count", "forever")] + \
         [(function, loop) for loop in ("for", "map", "list_map", "comprehension", "sum", "recursion", "thread", "generator")] + \
         [(trainer, loop) for loop in ("plain", "epochs", "callbacks", "framework")] + [(closure, "closure")]


def fitting(plan, style):
    make, loop = style
    if plan.exact and (style == (script, "epochs") or loop == "recursion" and plan.turns > DEEPEST):
        return False
    if make is closure:
        return plan.task.simple and plan.plain_update and not plan.context
    if loop == "callbacks":
        elsewhere = "".join(plan.start + plan.forward)
        return bool(plan.kept and plan.shown(dict(x="x", out="out", loss="loss"))) and "$model" not in "".join(plan.keep) and not plan.assigned and \
            not any("$" + name in elsewhere for name, _ in plan.kept)
    return True


def dress(plan, dice):
    """The files of the program, the one to run first."""
    style = make, loop = dice.choice([s for s in STYLES if fitting(plan, s)])
    plan.style = "%s-%s" % (make.__name__, loop)
    writer = Writer(plan, dice)
    main = dice.choice(FILES)
    run = make(writer, loop)
    classes, files = writer.classes(), {}
    if classes and dice.random() < 0.35:
        names = [line.split("(")[0].split()[1] for line in plan.task.classes.splitlines() if line.startswith(("class ", "def "))]
        wanted = [n for n in names if any(n + "(" in e for _, e in plan.state)]
        plan.own_imports.add("from models import " + ", ".join(wanted))
        files["models.py"] = "\n".join(["import torch", "import torch.nn as nn", "import torch.nn.functional as F", "", ""] + classes)
        classes = []
    top = writer.text(plan.top)
    lines = spaced(writer.header(), classes, writer.data(), top, run)
    files.update({name: "\n".join(writer.text(text.splitlines())) for name, text in plan.files.items()})
    return {main: "\n".join(lines), **files}
