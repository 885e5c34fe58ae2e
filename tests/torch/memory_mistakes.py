# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: each mistake is a function that changes a plan, in three variants.

mistake: as named. large: the mistake is mended, but the job is too large for the card. small: mended, and it fits.
The plan is what a program consists of before it has clothes; $names as in memory_tasks.py.
"""
import random
import textwrap

import memory_tasks
from memory_tasks import TASKS, Autoencoder, Cnn, Detector, Encoder, Gan, Gpt, Mlp, Rnn, Unet

MIB, GIB = 1 << 20, 1 << 30
RETENTION, EVAL, GROWTH, CAPACITY = "oom-graph-retention", "oom-eval-without-no-grad", "oom-growth", "oom-capacity"
TOO_LARGE, FRAGMENTED, LIBRARY, OTHERS = "oom-request-too-large", "oom-fragmentation", "oom-other-library", "oom-other-process"
LIMIT, PINNED = "oom-memory-fraction", "oom-pinned-host"
WIDE = (Gpt, Unet, Detector, Gan, Autoencoder)     # whose output is a good part of what a pass takes


class Plan:
    def __init__(self, dice, variant, memory, task):
        self.dice, self.variant, self.memory = dice, variant, memory
        self.size_dice = random.Random(dice.random())       # the sizes of variants differ; what is drawn after them must not
        self.task = task(dice)
        self.imports, self.own_imports, self.files = set(), set(), {}
        optimizer = dice.choice(("torch.optim.SGD($model.parameters(), lr=0.01, momentum=0.9)", "torch.optim.Adam($model.parameters(), lr=1e-3)",
                                 "torch.optim.AdamW($model.parameters(), lr=3e-4, weight_decay=0.01)"))
        self.state = [("model", self.task.build + ".to($device)"), ("opt", optimizer), *self.task.extra]
        self.kept, self.assigned = [], []       # states that only the lines in `keep` use; those that a step assigns to
        self.top, self.start, self.after = [], [], []
        self.forward = list(self.task.before) + self.task.forward()
        self.update = ["$opt.zero_grad()", "$loss.backward()  #@backward", "$opt.step()"]
        if dice.random() < 0.25:
            self.update.insert(2, "nn.utils.clip_grad_norm_($model.parameters(), 1.0)")
        self.trains = True
        self.plain_update = True                # the update is zero_grad, backward, step
        self.keep, self.context, self.value = [], None, "$loss.item()"
        self.batch, self.turns = 8, 10000
        self.growing = False                    # batches become larger from step to step
        self.exact = False                      # it must be this number of turns, no more and no less
        self.causes, self.certain, self.blame, self.asked = [], None, (), False

    @property
    def bad(self):
        return self.variant == "mistake"

    def label(self, causes, blame, certain=None, asked=False):
        """What is true of the mistake; its near misses are capacity, or nothing at all."""
        if self.bad:
            self.causes, self.blame, self.certain, self.asked = causes, blame, certain, asked
        elif self.variant == "large":
            self.causes, self.asked = [CAPACITY], True
        self.turns = self.turns if self.bad else 6

    def size(self, bytes_per_sample, share):
        """A batch that takes this share of the card, as people would round it."""
        batch = max(1, int(share * self.memory / bytes_per_sample))
        grain = 1 if batch < 16 else 4 if batch < 64 else 8 if batch < 512 else 64 if batch < 8192 else 1024
        self.batch = max(1, batch // grain * grain)

    def size_training(self, least=7, most=24):
        """One pass of training: a small part of the card, more than all of it, or much less."""
        u = self.size_dice.uniform
        self.size(self.task.graph, {"mistake": 1 / u(least, most), "large": u(1.5, 2.6), "small": u(0.1, 0.22)}[self.variant])

    def size_inference(self, kept, least=12, most=50):
        """One pass without gradients, of which `kept` bytes of a sample stay."""
        u = self.size_dice.uniform
        if self.bad:
            self.size(kept, min(1 / u(least, most), 0.3 * kept / self.task.light))
        else:
            self.size(self.task.light, u(1.6, 2.5) if self.variant == "large" else u(0.05, 0.2))

    def inference(self, guard=True):
        """No training: the optimizer goes, and with `guard` gradients are off."""
        self.state = [(n, e) for n, e in self.state if not n.startswith("opt")]
        self.forward = [self.task.forward()[0]] if self.task.simple else ["$out = $model($x)  #@forward"]
        self.update, self.plain_update, self.value, self.trains = [], False, None, False
        self.start.append("$model.eval()")
        if guard:
            self.context = self.dice.choice(("torch.no_grad()", "torch.inference_mode()", "torch.no_grad()"))

    def shown(self, local):
        return [local[n] for n in ("x", "out", "loss") if any("$" + n in line for line in self.keep)]


def code(text):
    return textwrap.dedent(text).strip("\n").splitlines()


# --- where people keep things ------------------------------------------------------------------


def store(plan, what, name=None):
    """Lines that keep `what` somewhere; where is the dice's choice."""
    dice = plan.dice
    name = name or dice.choice(("history", "results", "log", "records", "collected", "buffer"))
    kind = dice.choice(("list", "list", "dict", "pairs", "rows", "deque", "named", "default", "closure", "meter", "helper", "attribute", "namespace", "dataclass",
                        "lambda", "queue", "logging", "class", "nested", "heap"))
    add = "  #@keep"
    if kind == "list":
        plan.kept.append((name, "[]"))
        return ["$%s.append(%s)%s" % (name, what, add)]
    if kind == "dict":
        plan.kept.append((name, "{}"))
        return ["$%s[len($%s)] = %s%s" % (name, name, what, add)]
    if kind == "pairs":
        plan.kept.append((name, "[]"))
        return ["$%s.append((step, %s))%s" % (name, what, add)]
    if kind == "rows":
        plan.kept.append((name, "[]"))
        return ['$%s.append({"step": step, "value": %s})%s' % (name, what, add)]
    if kind == "deque":
        plan.imports.add("import collections")
        plan.kept.append((name, "collections.deque(maxlen=%d)" % dice.choice((5000, 100000))))
        return ["$%s.append(%s)%s" % (name, what, add)]
    if kind == "named":
        plan.imports.add("import collections")
        plan.kept.append((name, "collections.defaultdict(list)"))
        return ['$%s["%s"].append(%s)%s' % (name, dice.choice(("train", "epoch0", "main")), what, add)]
    if kind == "default":
        plan.top += code("def remember(value, seen=[]):\n    seen.append(value)  #@keep\n    return len(seen)\n")
        return ["remember(%s)%s" % (what, add)]
    if kind == "closure":
        plan.top += code("def make_recorder():\n    values = []\n\n    def record(value):\n        values.append(value)  #@keep\n\n    record.values = values\n    return record\n")
        plan.kept.append((name, "make_recorder()"))
        return ["$%s(%s)%s" % (name, what, add)]
    if kind == "meter":
        plan.top += code("class Meter:\n    def __init__(self):\n        self.values = []\n\n    def update(self, value):\n        self.values.append(value)  #@keep\n")
        plan.kept.append((name, "Meter()"))
        return ["$%s.update(%s)%s" % (name, what, add)]
    if kind == "helper":
        plan.files["utils.py"] = ("class Tracker:\n    def __init__(self, name):\n        self.name = name\n        self.items = []\n\n"
                                  "    def add(self, item):\n        self.items.append(item)  #@keep\n\n    def __len__(self):\n        return len(self.items)\n")
        plan.own_imports.add("from utils import Tracker")
        plan.kept.append((name, 'Tracker("%s")' % name))
        return ["$%s.add(%s)%s" % (name, what, add)]
    if kind == "attribute":
        plan.start.append("$model.seen = []")
        return ["$model.seen.append(%s)%s" % (what, add)]
    if kind == "namespace":
        plan.imports.add("import types")
        plan.kept.append((name, "types.SimpleNamespace(values=[])"))
        return ["$%s.values.append(%s)%s" % (name, what, add)]
    if kind == "lambda":
        plan.kept.append((name, "[]"))
        return ["$%s.append(lambda value=%s: value)%s" % (name, what, add)]
    if kind == "queue":
        plan.imports.add("import queue")
        plan.kept.append((name, "queue.Queue()"))
        return ["$%s.put(%s)%s" % (name, what, add)]
    if kind == "logging":
        plan.imports.add("import logging")
        plan.top += code('class Recent(logging.Handler):\n    def __init__(self):\n        super().__init__()\n        self.records = []\n\n'
                         '    def emit(self, record):\n        self.records.append(record)  #@keep\n\n\n'
                         'log_file = logging.getLogger("progress")\nlog_file.propagate = False\nlog_file.setLevel(logging.INFO)\nlog_file.addHandler(Recent())\n')
        return ['log_file.info("step %%d: %%s", step, %s)%s' % (what, add)]
    if kind == "class":
        plan.top += code("class Registry:\n    items = []\n")
        return ["Registry.items.append(%s)%s" % (what, add)]
    if kind == "nested":
        plan.kept.append((name, "{}"))
        return ['$%s.setdefault("steps", {})[step] = {"value": %s}%s' % (name, what, add)]
    if kind == "heap":
        plan.imports.add("import heapq")
        plan.kept.append((name, "[]"))
        return ["heapq.heappush($%s, (step, %s))%s" % (name, what, add)]
    plan.imports.add("from dataclasses import dataclass")
    plan.top += code("@dataclass\nclass Entry:\n    step: int\n    value: object\n")
    plan.kept.append((name, "[]"))
    return ["$%s.append(Entry(step, %s))%s" % (name, what, add)]


MISTAKES = {}


def mistake(*tasks, weight=1):
    def add(function):
        MISTAKES[function.__name__] = (function, tasks or TASKS, weight)
        return function
    return add


# --- graphs -------------------------------------------------------------------------------------


@mistake(weight=2)
def kept_losses(plan):
    """Each loss is kept, and backward is told to keep the graph."""
    plan.size_training()
    if plan.bad:
        plan.update = [line.replace("backward()", "backward(retain_graph=True)  #@retain") for line in plan.update]
    plan.keep = store(plan, "$loss" if plan.bad else "$loss.item()")
    plan.label([RETENTION], ("keep", "loss", "retain", "forward"))


@mistake()
def running_average(plan):
    """A moving average of the loss, with the graph of each."""
    plan.size_training()
    if plan.bad:
        plan.update = [line.replace("backward()", "backward(retain_graph=True)  #@retain") for line in plan.update]
    plan.state.append(("average", "0.0"))
    plan.assigned.append("average")
    what = "$loss" if plan.bad else plan.dice.choice(("$loss.item()", "$loss.detach()", "float($loss)"))
    form = plan.dice.choice(("$average = $average + %s", "$average = 0.9 * $average + 0.1 * %s", "$average += %s"))
    plan.keep = [form % what + "  #@keep"]
    plan.label([RETENTION], ("keep", "loss", "retain", "forward"))


@mistake(weight=2)
def summed_window(plan):
    """Losses are added up, and backward runs once per window of batches."""
    plan.size_training(least=6, most=16)
    plan.plain_update = False
    window = plan.dice.choice((50, 64, 100, 128)) if plan.bad else plan.dice.choice((2, 3, 4))
    if plan.bad:
        plan.state.append(("total", "0.0"))
        plan.assigned.append("total")
        plan.update = ["$total = $total + $loss  #@keep", "if (step + 1) %% %d == 0:" % window, "    ($total / %d).backward()" % window,
                       "    $opt.step()", "    $opt.zero_grad()", "    $total = 0.0"]
    else:
        plan.update = ["($loss / %d).backward()  #@backward" % window, "if (step + 1) %% %d == 0:" % window, "    $opt.step()", "    $opt.zero_grad()"]
    if plan.task.simple and plan.dice.random() < 0.5:       # one update before, so that backward has run
        plan.start += ["$model(%s).mean().backward()" % plan.task.inputs.replace("$batch", "2"), "$opt.step()", "$opt.zero_grad()"]
    plan.label([RETENTION], ("keep", "loss", "forward"))


@mistake(weight=2)
def monitored(plan):
    """A second pass per step, for monitoring, with gradients on; its result is kept."""
    plan.size_training()
    if plan.bad:
        plan.keep = ["gap = ($model($x) - $out.detach()).pow(2).mean()  #@produce"] + store(plan, "gap")
    else:
        kept = store(plan, "gap.item()")
        plan.keep = ["with torch.no_grad():", "    gap = ($model($x) - $out.detach()).pow(2).mean()"] + kept
    plan.label([RETENTION, EVAL], ("keep", "produce", "result"))


class CarriedRnn(Rnn):
    name = "carried"
    classes = '''
    class Forecaster(nn.Module):
        def __init__(self, features, hidden):
            super().__init__()
            self.rnn = nn.GRUCell(features, hidden)
            self.out = nn.Linear(hidden, features)

        def forward(self, seq, h=None):
            ys = []
            for t in range(seq.size(1)):
                h = self.rnn(seq[:, t], h)  #@result
                ys.append(self.out(h))
            return torch.stack(ys, 1), h
    '''

    def choose(self, dice):
        super().choose(dice)
        self.build = self.build.replace("SequenceModel", "Forecaster")

    def forward(self):
        return ["$out, $hidden = $model($x, $hidden)  #@forward", "$loss = F.mse_loss($out, $y)  #@loss"]


@mistake(CarriedRnn)
def carried_hidden(plan):
    """A stream is scored piece by piece, and the hidden state goes from piece to piece with its graph."""
    plan.inference(guard=not plan.bad)
    plan.forward = plan.task.forward()
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": 1 / u(7, 24), "large": u(1.6, 2.5) * plan.task.graph / plan.task.light, "small": u(0.1, 0.2)}[plan.variant])
    plan.state.append(("hidden", "None"))
    plan.assigned.append("hidden")
    plan.value = "$loss.item()"
    plan.label([EVAL, RETENTION], ("forward", "result"))


@mistake(*WIDE)
def statistics_module(plan):
    """A module keeps statistics of its activations, with their graph."""
    result, graph = plan.task.result, plan.task.graph
    u = plan.size_dice.uniform
    plan.size(graph, {"mistake": u(0.15, 0.3), "large": u(1.5, 2.6), "small": u(0.1, 0.22)}[plan.variant])
    plan.task.classes += textwrap.dedent('''


    class Monitored(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.activity = []

        def forward(self, x):
            y = self.net(x)  #@produce
            self.activity.append(%s)  #@keep
            return y
    ''').rstrip() % ("y.pow(2).mean(0)" if plan.bad else "y.detach().pow(2).mean().item()")
    plan.state[0] = ("model", "Monitored(%s).to($device)" % plan.task.build)
    assert result / graph > 0.005
    plan.label([GROWTH, RETENTION], ("keep", "produce", "result"))


@mistake(*WIDE)
def hooked(plan):
    """A forward hook keeps what it sees: in training, in evaluation with gradients, or without."""
    plan.imports.add("import collections")
    mode = plan.dice.choice(("train", "plain", "graph"))
    what = "output" if mode == "graph" else plan.dice.choice(("output", "output.detach()"))
    plan.kept.append(("captured", plan.dice.choice(("[]", "collections.defaultdict(list)"))))
    add = "append" if plan.kept[-1][1] == "[]" else "[type(module).__name__].append"
    plan.start += ["", "def remember(module, inputs, output):", "    $captured%s(%s)  #@keep" % (add if add[0] == "[" else "." + add,
                   what if plan.bad else "output.mean().item()"), "", "$model.register_forward_hook(remember)"]
    u = plan.size_dice.uniform
    if mode == "train":
        plan.size(plan.task.graph, {"mistake": u(0.15, 0.3), "large": u(1.5, 2.6), "small": u(0.1, 0.22)}[plan.variant])
        plan.label([GROWTH, RETENTION] if what == "output" else [GROWTH], ("keep", "forward", "result"))
    elif mode == "plain":
        plan.inference()
        plan.size_inference(plan.task.result)
        plan.label([GROWTH], ("keep", "forward", "result"))
    else:
        plan.inference(guard=not plan.bad)
        if plan.bad:
            plan.size_training()
        else:
            plan.size_inference(plan.task.result)
        plan.label([EVAL, RETENTION], ("keep", "forward", "result"))


@mistake(Mlp, Cnn, Encoder, Gpt, Rnn, Unet)
def kept_exceptions(plan):
    """Exceptions are kept with their tracebacks, and these keep the frames with the tensors."""
    plan.size_training()
    check = plan.dice.choice(("if step % 2 == 1:", "if step % 3 != 0:", "if step > 4:"))
    lines = [line.replace("$model", "model").replace("$x", "x").replace("$y", "y").replace("$out", "out").replace("$loss", "loss")
             for line in plan.task.forward()]
    plan.top += ["def compute_loss(model, x, y, step):", "    " + lines[0]] + \
                ["    " + check, "        raise ValueError(\"bad labels in batch %d\" % step)", "    " + lines[1], "    return loss"]
    plan.state.append(("failures", "[]"))
    plan.forward = ["try:", "    $loss = compute_loss($model, $x, $y, step)  #@call"] + ["    " + line for line in plan.update] + \
                   ["except ValueError as error:", "    $failures.append(%s)  #@keep" % ("error" if plan.bad else "str(error)")]
    plan.update, plan.plain_update, plan.value = [], False, None
    plan.label([RETENTION, GROWTH, EVAL], ("keep", "forward", "call"), certain=[RETENTION, GROWTH])


# --- evaluation ---------------------------------------------------------------------------------


@mistake(weight=2)
def predictions(plan):
    """Inference with gradients on, whose outputs are kept."""
    plan.inference(guard=not plan.bad)
    if plan.bad:
        plan.size_training(least=8, most=30)
    else:
        plan.size_inference(plan.task.result)
    plan.keep = store(plan, plan.dice.choice(("$out", "$out.mean()", "$out.softmax(-1).mean(0)")) if plan.bad else "$out.mean().item()")
    plan.label([EVAL, RETENTION], ("keep", "forward", "result"))


@mistake(weight=2)
def validation(plan):
    """Training is right; validation runs with gradients on and adds up its losses."""
    plan.size_training(least=9, most=24)
    if not plan.task.simple:
        plan.task.criterion = "$out.abs().mean()"
    plan.turns = plan.dice.choice((2, 4, 8))
    x, y = plan.task.inputs.replace("$device", '"cuda"').replace("$batch", "size"), plan.task.targets.replace("$device", '"cuda"').replace("$batch", "size")
    lines = ["out = model(x)  #@produce", "loss = %s  #@loss2" % plan.task.criterion.replace("$out", "out").replace("$x", "x").replace("$y", "y")]
    kept = plan.dice.choice(("total = total + loss", "total += loss", "losses.append(loss)", "losses.append(out)"))
    if not plan.bad:
        kept = kept.replace("+ loss", "+ loss.item()").replace("+= loss", "+= loss.item()").replace("(loss)", "(loss.item())").replace("(out)", "(out.mean().item())")
    body = ["x, y = %s, %s" % (x, y)] + lines + [kept + "  #@keep"]
    if not plan.bad:
        body = ["with torch.no_grad():"] + ["    " + line for line in body]
    plan.top += ["def validate(model, size, rounds):", "    model.eval()", "    total, losses = 0.0, []", "    for _ in range(rounds):"] + \
                ["        " + line for line in body] + ["    model.train()", "    return total / rounds, len(losses)"]
    plan.after = ["print(validate($model, $batch, %d))  #@call" % (500 if plan.bad else 6)]
    turns = plan.turns
    plan.label([EVAL, RETENTION], ("keep", "produce", "loss2", "result"))
    plan.turns = turns


@mistake(Mlp, Encoder, Rnn)
def one_pass(plan):
    """A single pass with gradients on: too large with them, small without."""
    plan.inference(guard=not plan.bad)
    u = plan.size_dice.uniform
    if plan.bad:
        plan.size(plan.task.graph, u(1.5, 2.0))
    else:
        plan.size_inference(plan.task.result)
    plan.turns, plan.keep = 3, ["print($out.shape)"]
    plan.label([EVAL, CAPACITY], ("forward", "inner", "result"), certain=[EVAL], asked=True)
    plan.turns = 3


# --- growth without graphs ----------------------------------------------------------------------


@mistake(Encoder, Gpt, Unet, Detector, Autoencoder, Gan, Rnn, weight=3)
def features(plan):
    """Features or predictions stay on the GPU, without a graph."""
    plan.inference()
    plan.size_inference(plan.task.result)
    plan.keep = store(plan, plan.dice.choice(("$out", "$out.detach()", "$out.clone()", "$out.half()", "$out * 1.0")) if plan.bad else "$out.mean().item()")
    plan.label([GROWTH], ("keep", "forward", "result"))


@mistake(*WIDE)
def predictions_in_training(plan):
    """Training keeps each batch's predictions for a metric, detached but on the GPU."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.15, 0.3), "large": u(1.5, 2.6), "small": u(0.1, 0.22)}[plan.variant])
    plan.keep = store(plan, "$out.detach()" if plan.bad else "$out.detach().mean().item()")
    plan.label([GROWTH], ("keep", "forward", "result"))


class KvDecoder(memory_tasks.Task):
    name = "generation"
    classes = '''
    class CachedAttention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

        def forward(self, x, cache, position):
            b, t, d = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            cache[0][:, :, position:position + t] = k
            cache[1][:, :, position:position + t] = v
            end = position + t
            y = F.scaled_dot_product_attention(q, cache[0][:, :, :end], cache[1][:, :, :end])
            return self.out(y.transpose(1, 2).reshape(b, t, d))


    class Generator(nn.Module):
        def __init__(self, vocab, dim, heads, layers, context):
            super().__init__()
            self.dim, self.heads, self.context = dim, heads, context
            self.embed = nn.Embedding(vocab, dim)
            self.layers = nn.ModuleList([CachedAttention(dim, heads) for _ in range(layers)])
            self.head = nn.Linear(dim, vocab)

        def new_cache(self, batch):
            shape = (2, batch, self.heads, self.context, self.dim // self.heads)
            return [torch.zeros(shape, device="cuda") for _ in self.layers]  #@result

        def forward(self, ids, cache, position):
            x = self.embed(ids)
            for layer, kv in zip(self.layers, cache):
                x = x + layer(x, kv, position)
            return self.head(x[:, -1])
    '''

    def choose(self, dice):
        d, n, t = dice.choice((512, 768, 1024)), dice.choice((4, 6, 8)), dice.choice((512, 1024, 2048))
        self.build = "Generator(8000, %d, %d, %d, %d)" % (d, d // 64, n, t)
        self.inputs, self.targets = "torch.randint(0, 8000, ($batch, 16)).to($device)", "None"
        self.graph = self.result = self.light = 4 * 2 * n * t * d
        self.params = 4 * (16000 * d + n * 4 * d * d)

    def forward(self):
        return ["cache = $model.new_cache($x.shape[0])  #@forward", "tokens = $x", "for position in range(0, 64, 16):",
                "    $out = $model(tokens, cache, position)", "    tokens = $out.argmax(-1, keepdim=True).expand(-1, 16)"]


@mistake(KvDecoder)
def sessions(plan):
    """Keys and values of every conversation are kept for the next turn of it."""
    plan.inference()
    plan.forward = plan.task.forward()
    u = plan.size_dice.uniform
    plan.size(plan.task.result, {"mistake": 1 / u(8, 30), "large": u(1.3, 1.8), "small": u(0.1, 0.3)}[plan.variant])
    if plan.bad:
        plan.keep = store(plan, "cache", "sessions")
    plan.label([GROWTH], ("keep", "forward", "result"))


class Policy(memory_tasks.Task):
    name = "reinforcement"
    classes = '''
    class Policy(nn.Module):
        def __init__(self, actions):
            super().__init__()
            self.conv = nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU())
            self.fc = nn.Linear(64 * 9 * 9, actions)

        def forward(self, frames):
            return self.fc(self.conv(frames).flatten(1))  #@inner
    '''
    criterion = "F.mse_loss($out.amax(1), $y)"

    def choose(self, dice):
        self.build = "Policy(%d)" % dice.choice((4, 6, 18))
        self.inputs, self.targets = "torch.rand($batch, 4, 84, 84, device=$device)", "torch.rand($batch, device=$device)"
        self.graph, self.result, self.light, self.params = 4 * (28224 + 12800 + 5184), 4 * 28224, 4 * (28224 + 2 * 12800), 4 * 100000


@mistake(Policy)
def replay(plan):
    """A replay buffer on the GPU that nothing bounds."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": 1 / u(15, 60), "large": u(1.5, 2.2), "small": u(0.1, 0.25)}[plan.variant])
    if plan.bad:
        plan.keep = store(plan, plan.dice.choice(("($x, $y)", "($x, $out.argmax(1), $y)", "$x")), "memory")
    else:
        plan.imports.add("import collections")
        plan.kept.append(("memory", "collections.deque(maxlen=2)"))
        plan.keep = ["$memory.append($y)"]
    plan.label([GROWTH], ("keep", "data"))


class Heavy(Mlp):
    """Mostly weights. `params` is set by share of the card, not by the dice."""

    name = "heavy"
    classes = Mlp.classes.replace("nn.Linear(hidden, hidden)", 'nn.Linear(hidden, hidden, device="cuda")')    # to fill them on the host takes a minute

    def choose(self, dice):
        self.width, self.depth = dice.choice((2048, 3072, 4096)), 4
        self.set(self.depth)

    def set(self, depth):
        w = self.width
        self.depth = max(1, depth)
        self.build = "Classifier(%d, %d, 10, depth=%d)" % (w, w, self.depth)
        self.inputs, self.targets = "torch.randn($batch, %d, device=$device)" % w, "torch.randint(0, 10, ($batch,), device=$device)"
        self.params = 4 * w * w * (self.depth + 1)
        self.graph = 4 * w * 3 * (self.depth + 1)

    def fill(self, share, memory):
        """As deep as takes this share of the card for weights alone."""
        self.set(int(share * memory / (4 * self.width * self.width)) - 1)


def heavy(plan, shares):
    plan.task.fill(shares[plan.variant], plan.memory)
    plan.state[0] = ("model", plan.task.build + ".to($device)")
    plan.batch = plan.dice.choice((32, 64, 128))


@mistake(Heavy)
def many_optimizers(plan):
    """A new optimizer per epoch, while the old ones stay referenced."""
    u = plan.size_dice.uniform
    heavy(plan, {"mistake": u(0.012, 0.03), "large": u(0.4, 0.6), "small": u(0.04, 0.1)})
    plan.state = [(n, e) for n, e in plan.state if n != "opt"]
    made = "opt = torch.optim.%s($model.parameters(), lr=1e-3)  #@keep" % plan.dice.choice(("Adam", "AdamW"))
    kept = store(plan, "opt", "optimizers") if plan.bad else []
    plan.forward = [made] + kept + plan.forward
    plan.update = [line.replace("$opt", "opt") + ("  #@produce" if "step" in line else "") for line in plan.update]
    plan.plain_update = False
    plan.label([GROWTH], ("keep", "produce"))


@mistake(Heavy)
def snapshots(plan):
    """The weights of each epoch are kept on the GPU, to choose the best one later."""
    u = plan.size_dice.uniform
    heavy(plan, {"mistake": u(0.012, 0.03), "large": u(0.4, 0.6), "small": u(0.03, 0.06)})
    plan.imports.add("import copy")
    what = plan.dice.choice(("copy.deepcopy($model.state_dict())", "{k: v.clone() for k, v in $model.state_dict().items()}", "copy.deepcopy($model)",
                             "[p.detach().clone() for p in $model.parameters()]"))
    if plan.bad:
        plan.keep = store(plan, what, "checkpoints")
    else:
        plan.keep = ["best = %s" % what]
    plan.label([GROWTH], ("keep",))


@mistake(Encoder, Mlp, Gpt)
def memoized(plan):
    """A function that makes tensors is memoized, with arguments that never come again."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.05, 0.15), "large": u(1.5, 2.5), "small": u(0.1, 0.22)}[plan.variant])
    plan.imports.add("import functools")
    rows = int(plan.memory * u(0.01, 0.05)) // 4 // 1024
    name = plan.dice.choice(("noise_for", "schedule", "positions", "reference"))
    plan.top += ["@functools.lru_cache(maxsize=%s)  #@keep" % ("None" if plan.bad else 1), "def %s(step):" % name,
                 "    return torch.linspace(0, 1, %d * 1024, device=\"cuda\").view(-1, 1024) * (step + 1)  #@produce" % rows]
    plan.forward = ["shift = %s(step)  #@call" % name] + plan.forward + ["$loss = $loss + shift.mean() * 0.01"]
    plan.label([GROWTH], ("keep", "produce", "call"))


@mistake(Heavy)
def gradient_log(plan):
    """Copies of all gradients, for a plot."""
    u = plan.size_dice.uniform
    heavy(plan, {"mistake": u(0.01, 0.03), "large": u(0.4, 0.6), "small": u(0.03, 0.06)})
    plan.keep = store(plan, "[p.grad.clone() for p in $model.parameters()]" if plan.bad else "[p.grad.norm().item() for p in $model.parameters()]")
    plan.label([GROWTH], ("keep",))


@mistake(Encoder, Autoencoder, Unet)
def growing_tensor(plan):
    """One tensor to which each batch is appended: with every step a new one is made, larger than the last."""
    plan.inference()
    plan.size_inference(plan.task.result, least=20, most=60)
    plan.state.append(("everything", "None"))
    plan.assigned.append("everything")
    if plan.bad:
        plan.keep = ["$everything = $out if $everything is None else torch.cat([$everything, $out])  #@keep"]
    else:
        plan.keep = ["$everything = $out.mean()"]
    plan.label([GROWTH, FRAGMENTED, CAPACITY], ("keep", "forward", "result"), certain=[GROWTH, FRAGMENTED])


@mistake(*WIDE)
def futures(plan):
    """Results of a thread pool: each future keeps what its call returned."""
    plan.inference()
    plan.size_inference(plan.task.result)
    plan.imports.add("import concurrent.futures")
    plan.state.append(("pool", "concurrent.futures.ThreadPoolExecutor(1)"))
    plan.kept.append(("pending", "[]"))
    what = "result" if plan.bad else "result.mean().item()"
    plan.top += ["@torch.no_grad()", "def infer(model, x):", "    result = model(x)  #@forward", "    return %s" % what]
    plan.context = None
    plan.forward = ["$out = $pool.submit(infer, $model, $x)", "$out.result()"]
    plan.keep = ["$pending.append($out)  #@keep"]
    plan.label([GROWTH], ("keep", "forward", "result"))


@mistake(*WIDE)
def gradient_hooks(plan):
    """A hook on the output keeps its gradient in every step."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.15, 0.3), "large": u(1.5, 2.6), "small": u(0.1, 0.22)}[plan.variant])
    plan.kept.append(("grads", "[]"))
    first = next(i for i, line in enumerate(plan.forward) if line.startswith("$out ="))
    plan.forward.insert(first + 1, "$out.register_hook(lambda grad: $grads.append(%s))  #@keep" % ("grad" if plan.bad else "grad.norm().item()"))
    plan.label([GROWTH], ("keep", "forward", "loss", "backward", "result"))


# --- others -------------------------------------------------------------------------------------

DRIVER = '''"""Frames shared with the renderer, outside of PyTorch."""
import ctypes

driver = ctypes.CDLL("libcuda.so.1")


class DeviceBuffer:
    def __init__(self, size):
        self.size, self.pointer = size, ctypes.c_uint64()
        status = driver.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(size))  #@hold
        if status:
            raise MemoryError("buffer of %d bytes: CUDA error %d" % (size, status))


class FramePool:
    def __init__(self, frames, bytes_per_frame):
        self.frames = [DeviceBuffer(bytes_per_frame) for _ in range(frames)]  #@hold
'''


@mistake(weight=2)
def other_library(plan):
    """Code beside PyTorch has most of the card."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.4, 0.55), "large": u(1.5, 2.2), "small": u(0.1, 0.2)}[plan.variant])
    held = int(plan.memory * (u(0.7, 0.85) if plan.bad else 0.03))
    frames = plan.dice.choice((1, 4, 16))
    plan.files["frames.py"] = DRIVER
    plan.own_imports.add("from frames import FramePool")
    plan.state.append(("pool", "FramePool(%d, %d << 20)  #@hold" % (frames, max(1, held // frames >> 20))))
    plan.label([LIBRARY], ("hold",), asked=True)


HOLDER = '''import ctypes
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
cuda.cuCtxSetCurrent(context)
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1]))) == 0
print("serving", flush=True)
sys.stdin.read()
'''
TORCH_HOLDER = '''import sys

import torch

weights = torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda")
print("serving", flush=True)
sys.stdin.read()
'''


@mistake(weight=2)
def other_process(plan):
    """A second process, an inference server, has most of the card."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.4, 0.55), "large": u(1.5, 2.2), "small": u(0.1, 0.2)}[plan.variant])
    plan.imports |= {"import subprocess", "import sys", "import os"}
    plan.files["serve.py"] = TORCH_HOLDER if plan.dice.random() < 0.4 else HOLDER
    plan.top += code('''
        def start_server(size):
            here = os.path.dirname(os.path.abspath(__file__))
            server = subprocess.Popen([sys.executable, os.path.join(here, "serve.py"), str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            server.stdout.readline()
            return server
    ''')
    plan.state.insert(0, ("server", "start_server(%d << 20)  #@hold" % (int(plan.memory * (u(0.7, 0.85) if plan.bad else 0.03)) >> 20)))
    plan.label([OTHERS], ("hold",), asked=True)


@mistake(weight=2)
def own_limit(plan):
    """The process limits itself."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.35, 0.5), "large": u(1.5, 2.2), "small": u(0.1, 0.2)}[plan.variant])
    share = plan.dice.choice((0.1, 0.15, 0.2)) if plan.bad else 0.98
    line = "torch.cuda.set_per_process_memory_fraction(%s)  #@hold" % share
    if plan.dice.random() < 0.5:
        plan.files["setup_gpu.py"] = "import torch\n\n\ndef prepare():\n    torch.backends.cudnn.benchmark = False\n    " + line + "\n"
        plan.own_imports.add("import setup_gpu")
        line = "setup_gpu.prepare()  #@hold"
    plan.state[0] = ("model", plan.task.build + ".to($device)")
    plan.top = [line]
    plan.label([LIMIT], ("hold",), asked=True)


# --- packing ------------------------------------------------------------------------------------


class Pieces(memory_tasks.Task):
    """No model: tensors of two sizes that come and go."""

    name = "pieces"

    def choose(self, dice):
        self.build, self.inputs, self.targets = "nn.Linear(64, 64)", "torch.randn($batch, 64, device=$device)", "torch.arange($batch)"
        self.graph = self.result = self.light = 256
        self.params = 16384
        self.criterion = "$out.mean()"


def last_request(plan, name, room):
    """What follows the loop: a request that packing alone decides, one that the card cannot serve beside its copy, or a small one."""
    size = {"mistake": room, "large": plan.memory * 0.6, "small": room * 0.1}[plan.variant]
    plan.after.append("%s = torch.empty(%d, 262144, device=$device)" % (name, int(size) >> 20))
    plan.after += ["scaled = %s * 0.5" % name] if plan.variant == "large" else []
    plan.after.append("print(%s.shape)" % name)


@mistake(Pieces)
def filtered(plan):
    """Candidates and their masks are made together; the masks go, and what is left has holes everywhere."""
    plan.inference()
    # one of each takes a segment of 20 MiB, and nothing else fits in beside them
    kept, dropped = plan.dice.choice((7, 8, 9)), plan.dice.choice((8, 9))
    rounds = int(plan.memory * (0.93 if plan.bad else 0.2) / (20 * MIB))
    plan.forward = ["candidate = torch.empty(%d, 262144, device=$device)  #@keep" % kept, "mask = torch.empty(%d, 262144, device=$device)" % dropped]
    if plan.variant != "large":
        plan.state += [("candidates", "[]"), ("masks", "[]")]
        plan.forward += ["$candidates.append(candidate)", "$masks.append(mask)", "candidate = mask = None"]
        plan.after = ["$masks.clear()"]
    last_request(plan, "joined", (plan.memory * 0.96 - rounds * kept * MIB) * plan.size_dice.uniform(0.45, 0.7))
    plan.label([FRAGMENTED, GROWTH], ("keep",), certain=[FRAGMENTED], asked=True)
    plan.turns, plan.batch, plan.exact = rounds, 64, True


@mistake(Pieces)
def holes(plan):
    """Each large temporary leaves a result behind that is kept in its place; the next one does not fit beside it."""
    plan.inference()
    big = plan.dice.choice((96, 128, 200, 320)) * (8 if plan.memory > 60 * GIB else 1)
    small = int(big * plan.dice.choice((0.6, 0.65, 0.7)))
    rounds = int(plan.memory * 0.8 / (big * MIB)) if plan.bad else 4
    plan.forward = ["window = torch.empty(%d + step %% 2 * 8, 262144, device=$device)" % big, "window = None",
                    "summary = torch.empty(%d, 262144, device=$device)  #@keep" % small]
    if plan.variant != "large":
        plan.state += [("summaries", "[]")]
        plan.forward.append("$summaries.append(summary)  #@keep")
    last_request(plan, "table", (plan.memory * 0.95 - rounds * small * MIB) * 0.75)
    plan.label([FRAGMENTED, GROWTH], ("keep",), certain=[FRAGMENTED], asked=True)
    plan.turns, plan.batch, plan.exact = rounds, 64, True


# --- one request ----------------------------------------------------------------------------------


@mistake(weight=3)
def odd_request(plan):
    """Everything fits but one request, which is out of line with the rest."""
    u, d = plan.size_dice.uniform, plan.dice
    plan.size(plan.task.graph, {"mistake": u(0.06, 0.2), "large": u(1.5, 2.5), "small": u(0.06, 0.2)}[plan.variant])
    turns = d.choice((3, 6, 20))
    kind = d.choice(("distance", "broadcast", "one_hot", "typo", "batch", "grid"))
    share = u(1.1, 6) if d.random() < 0.6 else u(0.97, 1.05)
    n = int((share * plan.memory / 4) ** 0.5)
    if not plan.bad:
        n = 2000
    if kind == "distance":
        plan.after = ["points = torch.randn(%d, 64, device=$device)" % n, "distances = torch.cdist(points, points)  #@odd", "print(distances.shape)"]
    elif kind == "broadcast":
        plan.after = ["prediction = torch.zeros(%d, 1, device=$device)" % n, "truth = torch.zeros(%d, device=$device)" % n,
                      "error = ((prediction - truth) ** 2).mean()  #@odd", "print(error)"]
    elif kind == "one_hot":
        plan.after = ["ids = torch.zeros(%d, dtype=torch.long, device=$device)" % (n * n // 60000 if plan.bad else 100),
                      "targets = torch.zeros(ids.shape[0], 60000, device=$device).scatter_(1, ids[:, None], 1.0)  #@odd", "print(targets.shape)"]
    elif kind == "typo":
        plan.after = ["mask = torch.ones(%d, %d, device=$device).tril()  #@odd" % (n, n), "print(mask.sum())"]
    elif kind == "grid":
        side = int((share * plan.memory / 4 / 32) ** (1 / 3)) if plan.bad else 32
        plan.after = ["volume = torch.zeros(32, %d, %d, %d, device=$device)  #@odd" % (side, side, side), "print(volume.shape)"]
    else:
        rows = n * n // 4096 if plan.bad else 64
        plan.after = ["everything = torch.randn(%d, 4096, device=$device)  #@odd" % rows, "print(everything.std())"]
    plan.label([TOO_LARGE, CAPACITY], ("odd",), asked=True)
    plan.turns = turns


@mistake()
def pinned(plan):
    """A staging buffer on the host, page-locked, for the whole data set."""
    plan.size_training()
    rows = plan.dice.choice((4, 8, 20)) * 1000000 if plan.bad else 100
    shape = plan.dice.choice(("3, 224, 224", "1024, 768", "512, 512"))
    plan.start += ["staging = torch.empty(%d, %s, pin_memory=True)  #@keep" % (rows, shape)]
    plan.label([PINNED], ("keep",), asked=True)


# --- too large -------------------------------------------------------------------------------------


@mistake(Heavy)
def optimizer_state(plan):
    """The weights fit, and the gradients, but not Adam's state beside them. No mistake: the job is too large."""
    u = plan.size_dice.uniform
    heavy(plan, {"mistake": u(0.28, 0.42), "large": u(0.55, 0.9), "small": u(0.05, 0.12)})
    plan.state = [(n, "torch.optim.AdamW($model.parameters(), lr=1e-4)" if n == "opt" else e) for n, e in plan.state]
    plan.label([CAPACITY], (), asked=True)
    plan.turns = 6


@mistake(Mlp, Encoder, Rnn, Gpt, Cnn)
def curriculum(plan):
    """Batches become larger from step to step, until one is too large. No mistake is in the code."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.03, 0.08), "large": u(0.4, 0.6), "small": u(0.01, 0.02)}[plan.variant])
    plan.task.inputs = plan.task.inputs.replace("$batch", "rows")
    plan.task.targets = plan.task.targets.replace("$batch", "rows")
    plan.growing = True
    plan.label([CAPACITY, FRAGMENTED], (), asked=True)      # sizes that change leave gaps, which may decide when it fails
    plan.turns = 100 if plan.bad else 10


@mistake(Mlp, Encoder, Rnn, Gpt, Cnn, Unet, Detector)
def large_validation(plan):
    """Training fits; validation, without gradients, uses a batch that does not."""
    u = plan.size_dice.uniform
    plan.size(plan.task.graph, {"mistake": u(0.1, 0.2), "large": u(1.5, 2.5), "small": u(0.1, 0.2)}[plan.variant])
    times = max(2, int(u(1.8, 2.6) / (plan.batch * plan.task.light / plan.memory))) if plan.bad else 1
    x = plan.task.inputs.replace("$batch", "size").replace("$device", '"cuda"')
    plan.top += ["@torch.no_grad()", "def validate(model, size):", "    model.eval()", "    x = %s" % x, "    out = model(x)  #@produce",
                 "    return out.mean().item()"]
    plan.after = ["print(validate($model, %s))" % ("$batch" if times == 1 else "%d * $batch" % times)]
    turns = plan.dice.choice((2, 5, 10))
    plan.label([CAPACITY], (), asked=True)
    plan.turns = turns


# --- choice ----------------------------------------------------------------------------------------


def plan(dice, variant, memory, only=None):
    """A plan from the dice. Each mistake is drawn by its weight, then one of the tasks that it can happen in."""
    names = list(MISTAKES)
    name = only or dice.choices(names, [MISTAKES[n][2] for n in names])[0]
    function, tasks, _ = MISTAKES[name]
    made = Plan(dice, variant, memory, dice.choice(tasks))
    made.mistake = name
    function(made)
    return made
