# SPDX-License-Identifier: Apache-2.0
"""Programs in several variants that differ in numbers only: sizes, card, number of turns, length of prompts.

What is wrong with a program does not depend on these numbers, so the answer may not, either. A story is a function that gets two dice:
one decides how the program is written, which all of its variants share, the other one its numbers. It returns the files and what is
true of all variants. Marks and labels are those of memory_programs.py.
"""
import random
import textwrap
from string import Template

import memory_programs
from memory_mistakes import CAPACITY, EVAL, FRAGMENTED, GROWTH, HOLDER, OTHERS, RETENTION

MIB, GIB = 1 << 20, 1 << 30
CARDS = ("rtx3060", "rtx4090", "a100-40gb", "l4", "h200", "t4", "rtx5090", "l40s")
VARIANTS = 5
STORIES = {}


class Truth:
    def __init__(self, causes, certain=None, blame=(), asked=False):
        self.causes, self.certain, self.blame, self.asked = causes, certain, blame, asked


def story(function):
    STORIES[function.__name__] = function
    return function


def fill(text, **numbers):
    return Template(textwrap.dedent(text).lstrip("\n")).substitute(numbers)


def part(memory, share, *sizes):
    """How many things of this many bytes take this share of the card, at least one."""
    bytes_each = 1
    for size in sizes:
        bytes_each *= size
    return max(1, int(share * memory / bytes_each))


# --- caches ------------------------------------------------------------------------------------

DECODER = '''
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, past):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)  #@cat
            v = torch.cat([past[1], v], dim=2)  #@cat
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, d)), (k, v)  #@cat


class Decoder(nn.Module):
    def __init__(self, dim, heads, layers):
        super().__init__()
        self.embed = nn.Embedding(1000, dim)
        self.layers = nn.ModuleList([Attention(dim, heads) for _ in range(layers)])
        self.head = nn.Linear(dim, 1000)

    def forward(self, ids, past=None):
        x, new = self.embed(ids), []
        for i, layer in enumerate(self.layers):
            y, kv = layer(x, past[i] if past else None)  #@cat
            x = x + y
            new.append(kv)
        return self.head(x[:, -1:]), new
'''


@story
def cat_sessions(dice, size, memory):
    """A cache of keys and values per conversation, extended by torch.cat in every turn of it; none ever ends."""
    layers, dim, batch = size.choice((4, 6, 8)), size.choice((512, 768, 1024)), size.choice((1, 2, 4, 8))
    prompt, sessions = size.choice((64, 200, 500, 1000)), size.choice((1, 4, 8, 16, 40))
    turns = sessions * size.choice((3, 5, 12))
    each = 4 * 2 * layers * dim                             # bytes of a token
    prompt = max(8, int(memory / each / batch / turns) // 8 * 8) if size.random() < 0.6 else prompt
    batch = max(1, int(memory / each / prompt / turns)) if batch * prompt * each * 400 < memory else batch
    which = dice.choice(("turn % $SESSIONS", "random.randrange($SESSIONS)", "turn // $TURNS"))
    keep = dice.choice(("store", "class", "object"))
    model = "Decoder($DIM, $HEADS, $LAYERS).cuda().eval()"
    body = {
        "store": '''
            model, sessions = %s, {}
            for turn in range(100000):
                who = %s
                ids = torch.randint(0, 1000, ($BATCH, $PROMPT), device="cuda")
                with torch.no_grad():
                    logits, past = model(ids, sessions.get(who))  #@cat
                sessions[who] = past  #@keep
            ''' % (model, which),
        "class": '''
            class Server:
                def __init__(self):
                    self.model, self.sessions = %s, {}

                @torch.inference_mode()
                def chat(self, who, ids):
                    logits, self.sessions[who] = self.model(ids, self.sessions.get(who))  #@keep
                    return logits


            server = Server()
            for turn in range(100000):
                server.chat(%s, torch.randint(0, 1000, ($BATCH, $PROMPT), device="cuda"))  #@cat
            ''' % (model, which),
        "object": '''
            class Session:
                def __init__(self):
                    self.past, self.tokens = None, 0

                def add(self, model, ids):
                    with torch.no_grad():
                        logits, self.past = model(ids, self.past)  #@keep
                    self.tokens += ids.shape[1]
                    return logits.argmax(-1)


            def main():
                model, sessions = %s, collections.defaultdict(Session)
                for turn in range(100000):
                    who = %s
                    for _ in range(2):
                        sessions[who].add(model, torch.randint(0, 1000, ($BATCH, $PROMPT), device="cuda"))  #@cat


            main()
            ''' % (model, which),
    }[keep]
    text = fill("import collections\nimport random\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nrandom.seed(0)\n" + DECODER + "\n\n"
                + textwrap.dedent(body).lstrip("\n"), DIM=dim, HEADS=dim // 64, LAYERS=layers, BATCH=batch, PROMPT=prompt, SESSIONS=sessions, TURNS=turns)
    return {"serve.py": text}, Truth([GROWTH], blame=("cat", "keep"))


@story
def cat_store(dice, size, memory):
    """The same without a model: each session's keys and values are two tensors per layer, which grow by torch.cat."""
    layers, heads, width = size.choice((2, 8, 24)), size.choice((8, 16, 32)), size.choice((64, 128))
    sessions = size.choice((4, 16, 64, 200))
    turns = sessions * size.choice((3, 5, 12))
    tokens = max(1, int(memory / (2 * 2 * layers * heads * width * turns)))
    # a short-lived copy beside the new one is what leaves gaps
    scratch = dice.choice(("", "            scaled = (k * 0.125).contiguous()\n            del scaled\n"))
    grow = dice.choice(('''
            cache[layer] = (torch.cat((old[0], k), 1), torch.cat((old[1], v), 1)) if old else (k, v)  #@keep
''', '''
            cache[layer] = tuple(torch.cat(pair, 1) for pair in zip(old, (k, v))) if old else (k, v)  #@keep
'''))
    text = fill('''
import torch

store = {}


def append(session, tokens):
    cache = store.setdefault(session, {})
    for layer in range($LAYERS):
        k = torch.randn($HEADS, tokens, $WIDTH, device="cuda", dtype=torch.half)  #@keep
        v = torch.randn($HEADS, tokens, $WIDTH, device="cuda", dtype=torch.half)  #@keep
''' + "SCRATCH" + '''
        old = cache.get(layer)
        if True:''' + grow + '''

for turn in range(100000):
    append("user%d" % (turn % $SESSIONS), $TOKENS)  #@keep
''', LAYERS=layers, HEADS=heads, WIDTH=width, SESSIONS=sessions, TOKENS=tokens).replace("SCRATCH\n", textwrap.dedent(scratch) and textwrap.indent(textwrap.dedent(scratch), "        "))
    return {"kv.py": text}, Truth([GROWTH], blame=("keep",))


@story
def cat_history(dice, size, memory):
    """One tensor to which every turn appends, and a longer temporary beside it: large gaps."""
    rows, turns = size.choice((1024, 2048, 4096)), size.choice((12, 25, 60))
    batch = max(1, int(memory / 4 / rows / turns / 2))
    temporary = dice.choice(("scores = (history * 2).sum()", "scores = history.softmax(-1).mean()", "scores = history.sum()"))
    text = fill('''
        import torch

        encoder = torch.nn.Linear(256, $ROWS).cuda()
        history = torch.empty(0, $ROWS, device="cuda")
        for step in range(100000):
            with torch.no_grad():
                new = encoder(torch.randn($BATCH, 256, device="cuda"))
                history = torch.cat([history, new])  #@keep
                ''' + temporary + '''
        ''', ROWS=rows, BATCH=batch)
    return {"history.py": text}, Truth([GROWTH], blame=("keep",))


@story
def ragged_results(dice, size, memory):
    """Results of prompts of many lengths are kept: gaps and growth."""
    dim, layers = size.choice((512, 1024)), size.choice((2, 4))
    batch = max(1, int(memory / 4 / dim / 400 / size.choice((120, 250, 500))))
    keep = dice.choice(("kept.append(out)", "kept[step] = out", "kept.append((step, out.clone()))"))
    text = fill('''
        import random

        import torch
        import torch.nn as nn

        random.seed($SEED)
        layer = nn.TransformerEncoderLayer($DIM, 8, batch_first=True)
        model = nn.TransformerEncoder(layer, $LAYERS, enable_nested_tensor=False).cuda().eval()
        kept = ''' + ("{}" if "[step]" in keep else "[]") + '''
        for step in range(100000):
            x = torch.randn($BATCH, random.randrange(20, 800), $DIM, device="cuda")
            with torch.no_grad():
                out = model(x)  #@keep
            ''' + keep + '''  #@keep
        ''', DIM=dim, LAYERS=layers, BATCH=batch, SEED=size.randrange(100))
    return {"embed.py": text}, Truth([GROWTH], blame=("keep",))


@story
def unbounded_prefetch(dice, size, memory):
    """A thread puts batches on the card faster than the training takes them, into a queue without a bound."""
    rows = max(1, int(memory / 4 / 4096 / size.choice((40, 90, 200))))
    depth, width = size.choice((2, 4)), size.choice((1024, 2048))
    starts = dice.choice(("threading.Thread(target=produce, daemon=True).start()", "Producer().start()"))
    text = fill('''
        import queue
        import threading

        import torch
        import torch.nn as nn

        ready, taken = queue.Queue(), threading.Semaphore(0)


        def produce():
            for number in range(100000):
                ready.put(torch.randn($ROWS, 4096, device="cuda"))  #@keep
                if number % 3 == 2:
                    taken.acquire()


        class Producer(threading.Thread):
            daemon = True

            def run(self):
                produce()


        model = nn.Sequential(nn.Linear(4096, $WIDTH), *[nn.Linear($WIDTH, $WIDTH) for _ in range($DEPTH)]).cuda()
        opt = torch.optim.SGD(model.parameters(), lr=1e-3)
        ''' + starts + '''
        for step in range(100000):
            batch = ready.get(timeout=20)
            loss = model(batch[:64]).pow(2).mean()  #@asked
            opt.zero_grad()
            loss.backward()
            opt.step()
            held = torch.empty($ROWS * 2, 4096, device="cuda")
            del held, batch
            taken.release()
        ''', ROWS=rows, WIDTH=width, DEPTH=depth)
    return {"train.py": text}, Truth([GROWTH], blame=("keep",))


@story
def one_generation(dice, size, memory):
    """A single generation that goes on until its keys and values fill the card: no line is wrong."""
    layers, dim = size.choice((4, 8)), size.choice((512, 1024))
    step = size.choice((16, 64, 256))
    batch = max(1, int(memory / (4 * 2 * layers * dim * step) / size.choice((20, 50, 100))))
    text = fill("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + DECODER + '''

model = Decoder($DIM, $HEADS, $LAYERS).cuda().eval()
ids, past = torch.randint(0, 1000, ($BATCH, $STEP), device="cuda"), None
with torch.no_grad():
    while True:
        logits, past = model(ids, past)  #@cat
        ids = logits.argmax(-1).expand(-1, $STEP)
''', DIM=dim, HEADS=dim // 64, LAYERS=layers, BATCH=batch, STEP=step)
    return {"generate.py": text}, Truth([GROWTH, CAPACITY], certain=[], blame=("cat",), asked=True)


# --- what a loop builds ------------------------------------------------------------------------

LAYERS = {
    "parameter": '''
class Block(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.up = nn.Parameter(torch.empty(wide, dim, device="cuda", dtype=torch.half))  #@build
        self.down = nn.Parameter(torch.empty(dim, wide, device="cuda", dtype=torch.half))  #@build

    def forward(self, x):
        return x + F.linear(F.silu(F.linear(x, self.up)), self.down)
''',
    "method": '''
class Projection(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.create_weights(dim, wide)

    def create_weights(self, dim, wide):
        weight = torch.empty(wide, dim, dtype=torch.half, device="cuda")  #@build
        self.register_parameter("weight", nn.Parameter(weight, requires_grad=False))

    def forward(self, x):
        return F.linear(x, self.weight)


class Block(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.up, self.down = Projection(dim, wide), Projection(wide, dim)  #@build

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))
''',
    "buffer": '''
class Packed(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.register_buffer("qweight", torch.zeros(wide, dim, dtype=torch.half, device="cuda"))  #@build
        self.register_buffer("scales", torch.ones(wide, 1, dtype=torch.half, device="cuda"))  #@build

    def forward(self, x):
        return F.linear(x, self.qweight * self.scales)


class Block(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.up, self.down = Packed(dim, wide), Packed(wide, dim)  #@build

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))
''',
    "linear": '''
class Block(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.up = nn.Linear(dim, wide, bias=False, device="cuda", dtype=torch.half)  #@build
        self.down = nn.Linear(wide, dim, bias=False, device="cuda", dtype=torch.half)  #@build

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))
''',
}
BUILDS = (
    "self.layers = nn.ModuleList([Block(dim, wide) for _ in range(layers)])  #@build",
    "self.layers = make_layers(layers, lambda prefix: Block(dim, wide))  #@build",
    "self.layers = nn.ModuleList()\n        for i in range(layers):\n            self.layers.append(Block(dim, wide))  #@build",
    "self.layers = nn.Sequential(*(Block(dim, wide) for _ in range(layers)))  #@build",
    "for i in range(layers):\n            setattr(self, \"layer%d\" % i, Block(dim, wide))  #@build",
)
ENGINE = '''
def make_layers(count, factory):
    return nn.ModuleList([factory("model.layers.%%d" %% i) for i in range(count)])  #@build

%s

class Engine(nn.Module):
    def __init__(self, dim, wide, layers):
        super().__init__()
        %s

    def forward(self, x):
        for layer in self.children() if not hasattr(self, "layers") else self.layers:
            x = layer(x)
        return x
'''
IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


def engine(dice, kinds=tuple(LAYERS)):
    return ENGINE % (LAYERS[dice.choice(kinds)], dice.choice(BUILDS))


def layer_size(size):
    dim = size.choice((1024, 2048, 4096))
    return dim, dim * size.choice((2, 4)) + size.choice((0, 64, 256))


@story
def engine_too_large(dice, size, memory):
    """An engine whose layers do not fit; they are built in a loop."""
    dim, wide = layer_size(size)
    text = fill(IMPORTS + engine(dice) + '''

''' + dice.choice(("engine = Engine($DIM, $WIDE, $LAYERS)\n", "def load_model():\n    return Engine($DIM, $WIDE, $LAYERS)\n\n\nengine = load_model()\n",
                   "with torch.no_grad():\n    engine = Engine($DIM, $WIDE, $LAYERS)\n")) +
                "print(sum(p.numel() for p in engine.parameters()))\n", DIM=dim, WIDE=wide, LAYERS=part(memory, size.uniform(1.1, 1.8), 2, 2, dim, wide))
    return {"engine.py": text}, Truth([CAPACITY], blame=("build",), asked=True)


@story
def engine_second(dice, size, memory):
    """A draft model runs first; the engine that is built after it does not fit."""
    dim, wide = layer_size(size)
    text = fill(IMPORTS + engine(dice) + '''

draft = Engine($DIM, $WIDE, 2)
with torch.no_grad():
    for step in range($STEPS):
        print(draft(torch.randn($BATCH, $DIM, device="cuda", dtype=torch.half)).shape)
target = Engine($DIM, $WIDE, $LAYERS)
print(sum(p.numel() for p in target.parameters()))
''', DIM=dim, WIDE=wide, STEPS=size.choice((1, 3, 10)), BATCH=size.choice((1, 64)), LAYERS=part(memory, size.uniform(1.1, 1.8), 2, 2, dim, wide))
    return {"speculative.py": text}, Truth([CAPACITY], blame=("build",), asked=True)


@story
def engine_ensemble(dice, size, memory):
    """Members of an ensemble, all of them needed, each tried when it has been built."""
    dim, wide = layer_size(size)
    members = size.choice((4, 8, 16))
    text = fill(IMPORTS + engine(dice) + '''

members = []
for name in ["seed%d" % i for i in range($MEMBERS)]:
    members.append(Engine($DIM, $WIDE, $LAYERS))
    with torch.no_grad():
        members[-1](torch.randn(4, $DIM, device="cuda", dtype=torch.half))
print(len(members))
''', DIM=dim, WIDE=wide, MEMBERS=members, LAYERS=part(memory / members, size.uniform(1.2, 1.8), 2, 2, dim, wide))
    return {"ensemble.py": text}, Truth([CAPACITY, GROWTH], certain=[], blame=("build",), asked=True)


@story
def engine_cache(dice, size, memory):
    """The weights fit and a profiling pass runs; the cache, as large as the settings say, is allocated layer by layer and does not."""
    dim, wide = layer_size(size)
    layers = part(memory, size.uniform(0.1, 0.4), 2, 2, dim, wide)
    blocks = part(memory / layers, size.uniform(0.95, 1.6), 2, 2, 16, dim)
    allocate = dice.choice(('''
cache = []
for layer in range($LAYERS):
    cache.append(torch.zeros(2, $BLOCKS, 16, $DIM, dtype=torch.half, device="cuda"))  #@build
''', '''
cache = [torch.empty(2, $BLOCKS, 16, $DIM, dtype=torch.half, device="cuda") for _ in range($LAYERS)]  #@build
''', '''
class Cache:
    def __init__(self, layers):
        self.k, self.v = {}, {}
        for i in range(layers):
            self.k[i] = torch.empty($BLOCKS, 16, $DIM, dtype=torch.half, device="cuda")  #@build
            self.v[i] = torch.empty($BLOCKS, 16, $DIM, dtype=torch.half, device="cuda")  #@build


cache = Cache($LAYERS)
'''))
    profile = dice.choice(("    engine(torch.randn(64, $DIM, device=\"cuda\", dtype=torch.half))\n",
                           "    for tokens in (512, 256, 64):\n        engine(torch.randn(tokens, $DIM, device=\"cuda\", dtype=torch.half))\n"))
    text = fill(IMPORTS + engine(dice) + '''

engine = Engine($DIM, $WIDE, $LAYERS)
with torch.no_grad():
''' + profile + allocate + "print(torch.cuda.memory_allocated())\n", DIM=dim, WIDE=wide, LAYERS=layers, BLOCKS=blocks)
    return {"engine.py": text}, Truth([CAPACITY], blame=("build",), asked=True)


@story
def weights_loaded(dice, size, memory):
    """Weights come from a checkpoint, tensor by tensor, and go to the card until it is full."""
    dim, wide = layer_size(size)
    layers = part(memory, size.uniform(1.1, 1.8), 2, 2, dim, wide)
    place = dice.choice(('''
for name, shape in index():
    weights[name] = torch.empty(shape, dtype=torch.half, device="cuda")  #@build
''', '''
def materialize(model, index):
    for name, shape in index:
        owner, _, last = name.rpartition(".")
        module = model.get_submodule(owner)
        module._parameters[last] = nn.Parameter(torch.empty(shape, dtype=torch.half, device="cuda"), requires_grad=False)  #@build


materialize(model, index())
''', '''
state = {}
for shard in range(0, $LAYERS, 8):
    for layer in range(shard, min(shard + 8, $LAYERS)):
        for name, shape in index(layer, layer + 1):
            state[name] = torch.empty(shape, dtype=torch.half, device="cuda")  #@build
model.load_state_dict(state, assign=True)
''', '''
for layer, block in enumerate(model.layers):
    block.to_empty(device="cuda")  #@build
'''))
    text = fill(IMPORTS + '''
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = (nn.Linear($DIM, $WIDE, bias=False, device="meta", dtype=torch.half),
                              nn.Linear($WIDE, $DIM, bias=False, device="meta", dtype=torch.half))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range($LAYERS)])


def index(first=0, end=$LAYERS):
    for layer in range(first, end):
        yield "layers.%d.up.weight" % layer, ($WIDE, $DIM)
        yield "layers.%d.down.weight" % layer, ($DIM, $WIDE)


model, weights = Model(), {}
''' + place + "print(torch.cuda.memory_allocated())\n", DIM=dim, WIDE=wide, LAYERS=layers)
    return {"load.py": text}, Truth([CAPACITY], blame=("build",), asked=True)


@story
def weights_cast(dice, size, memory):
    """The same, but each weight comes in another precision first, or is initialized by way of temporaries, which go again."""
    dim, wide = layer_size(size)
    layers = part(memory, size.uniform(1.1, 1.8), 2, 2, dim, wide)
    load = dice.choice(('''
        stored = torch.empty(rows, columns, device="cuda")
        self.weight = nn.Parameter(stored.half(), requires_grad=False)  #@build
''', '''
        packed = torch.zeros(rows, columns // 2, dtype=torch.uint8, device="cuda")
        low, high = packed & 15, packed >> 4
        self.weight = nn.Parameter(torch.stack((low, high), -1).view(rows, columns).half())  #@build
''', '''
        self.weight = nn.Parameter(torch.empty(rows, columns, dtype=torch.half, device="cuda"))  #@build
        self.weight.data.copy_(1.0 - 2.0 * torch.rand(rows, columns, device="cuda"))
''', '''
        self.weight = nn.Parameter(torch.randn(rows, columns, dtype=torch.half, device="cuda") * 0.02)  #@build
        self.scale = float(1 / self.weight.data.norm(dim=1).mean())
'''))
    text = fill(IMPORTS + '''
class Weight(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()''' + load + '''
    def forward(self, x):
        return F.linear(x, self.weight)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = Weight($WIDE, $DIM), Weight($DIM, $WIDE)  #@build

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        ''' + dice.choice(("self.layers = nn.ModuleList([Block() for _ in range($LAYERS)])  #@build",
                           "self.layers = nn.ModuleList()\n        for i in range($LAYERS):\n            self.layers.append(Block())  #@build")) + '''


model = Model()  #@build
print(sum(p.numel() for p in model.parameters()))
''', DIM=dim, WIDE=wide, LAYERS=layers)
    return {"load.py": text}, Truth([CAPACITY], blame=("build",), asked=True)


@story
def calibrated(dice, size, memory):
    """Layers are built one by one, and each is run with what the one before returned: to calibrate it, or to see that it works."""
    dim, wide = layer_size(size)
    layers = part(memory, size.uniform(1.1, 1.8), 2, 2, dim, wide)
    text = fill(IMPORTS + LAYERS[dice.choice(tuple(LAYERS))] + '''

def build(count):
    layers, x = nn.ModuleList(), torch.randn($BATCH, $DIM, device="cuda", dtype=torch.half)
    for i in range(count):
        layer = Block($DIM, $WIDE)  #@build
        ''' + dice.choice(("with torch.no_grad():\n            x = layer(x)", "with torch.inference_mode():\n            layer.peak = layer(x).abs().max()")) + '''
        layers.append(layer)  #@build
    return layers


model = build($LAYERS)  #@build
''', DIM=dim, WIDE=wide, LAYERS=layers, BATCH=size.choice((1, 16, 256)))
    return {"calibrate.py": text}, Truth([CAPACITY, GROWTH], certain=[CAPACITY], blame=("build",), asked=True)


@story
def adapters(dice, size, memory):
    """A model that runs, and adapters for many tenants, all loaded before the first request."""
    dim, wide = layer_size(size)
    layers, tenants = size.choice((4, 8)), size.choice((6, 12, 40))
    rank = part(memory / tenants / layers, size.uniform(1.1, 1.5), 2, dim + wide)
    text = fill(IMPORTS + engine(dice) + '''

class Adapter(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.a = nn.ParameterList([torch.zeros($DIM, rank, device="cuda", dtype=torch.half) for _ in range($LAYERS)])  #@build
        self.b = nn.ParameterList([torch.zeros(rank, $WIDE, device="cuda", dtype=torch.half) for _ in range($LAYERS)])  #@build


engine, tenants = Engine($DIM, $WIDE, $LAYERS), {}
with torch.no_grad():
    engine(torch.randn(16, $DIM, device="cuda", dtype=torch.half))
for name in range($TENANTS):
    tenants[name] = Adapter($RANK)  #@build
print(len(tenants))
''', DIM=dim, WIDE=wide, LAYERS=layers, TENANTS=tenants, RANK=rank)
    return {"tenants.py": text}, Truth([CAPACITY], blame=("build",), asked=True)


@story
def first_use(dice, size, memory):
    """Each layer makes a cache, or each expert its weights, when it is first needed, during the first requests; there are too many."""
    dim = size.choice((512, 1024, 2048))
    many = size.choice((16, 32, 64))
    rows = part(memory / many, size.uniform(1.15, 1.7), 4, dim)
    make = dice.choice(("torch.zeros($ROWS, $DIM, device=\"cuda\")", "torch.ones($ROWS, $DIM, device=\"cuda\")"))
    kind = dice.choice(("layers", "experts", "loop"))
    if kind == "layers":
        body = '''
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear($DIM, $DIM)
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = MAKE  #@build
        return self.proj(x) + self.table[:x.shape[0]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range($MANY)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  #@build
        return x


net = Net().cuda()
for request in range(100):
    with torch.no_grad():
        net(torch.randn(1, $DIM, device="cuda"))  #@build
'''
    elif kind == "experts":
        body = '''
class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear($DIM, $MANY), {}

    def expert(self, i):
        if i not in self.experts:
            self.experts[i] = MAKE  #@build
        return self.experts[i]

    def forward(self, x, i):
        self.gate(x)
        return x + self.expert(i)[:x.shape[0]].mean(0)  #@build


net, order = Mixture().cuda(), list(range($MANY))
for request in range(1000):
    with torch.no_grad():
        net(torch.randn(1, $DIM, device="cuda"), order[request % len(order)])  #@build
'''
    else:
        body = '''
layers, tables = [nn.Linear($DIM, $DIM).cuda() for _ in range($MANY)], {}
for request in range(100):
    x = torch.randn(1, $DIM, device="cuda")
    with torch.no_grad():
        for i, layer in enumerate(layers):
            if i not in tables:
                tables[i] = MAKE  #@build
            x = layer(x) + tables[i][:1]
'''
    text = fill(IMPORTS + body.replace("MAKE", make), DIM=dim, ROWS=rows, MANY=many)
    certain = [CAPACITY] if kind != "experts" else []
    return {"lazy.py": text}, Truth([CAPACITY] if kind != "experts" else [CAPACITY, GROWTH], certain=certain, blame=("build",), asked=True)


@story
def kept_models(dice, size, memory):
    """The counterpart: each trial of a search leaves its model behind, in a list of results."""
    dim = size.choice((1024, 2048))
    depth = part(memory, 1 / size.uniform(8, 25), 16, dim, dim)
    block = dice.choice(("nn.Linear($DIM, $DIM, device=\"cuda\")", "Block($DIM)"))
    keep = dice.choice(("results.append((loss.item(), model))", "results[trial] = {\"loss\": loss.item(), \"model\": model}"))
    text = fill(IMPORTS + '''
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, dim, device="cuda"))  #@build

    def forward(self, x):
        return F.linear(x, self.weight)  #@build


def build():
    return nn.Sequential(*[''' + block + ''' for _ in range($DEPTH)])  #@build


def evaluate(model, steps):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss = model(torch.randn($BATCH, $DIM, device="cuda")).pow(2).mean()  #@build
        opt.zero_grad()
        loss.backward()  #@build
        opt.step()
    return loss


results = ''' + ("{}" if "trial]" in keep else "[]") + '''
for trial in range(1000):
    model = build()  #@build
    loss = evaluate(model, $STEPS)  #@build
    ''' + keep + '''  #@build
''', DIM=dim, DEPTH=depth, BATCH=size.choice((8, 64)), STEPS=size.choice((2, 4)))
    return {"search.py": text}, Truth([GROWTH], blame=("build",))


# --- others and packing ------------------------------------------------------------------------


def start_holder(share, memory):
    return '''
import os
import subprocess
import sys

import torch
import torch.nn as nn

here = os.path.dirname(os.path.abspath(__file__))
server = subprocess.Popen([sys.executable, os.path.join(here, "serve.py"), str(%d << 20)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  #@hold
server.stdout.readline()
''' % (int(share * memory) >> 20)


@story
def others_and_gaps(dice, size, memory):
    """Another process has a part of the card, and this one's free memory is in pieces: the request would have fit without either."""
    share = size.uniform(0.2, 0.45)
    keep, drop = size.choice((7, 8, 9)), size.choice((8, 9))
    rounds = int(memory * (0.93 - share) / (20 * MIB))
    ask = (rounds * (20 - keep)) * size.uniform(0.4, 0.8)
    after = dice.choice(("joined = torch.empty($ASK, 262144, device=\"cuda\")\n",
                         "net = nn.Linear(64, 64).cuda()\nfor step in range(5):\n    joined = torch.empty($ASK, 262144, device=\"cuda\")\n    net(joined[0, :64])\n"))
    text = fill(start_holder(share, memory) + '''
kept, dropped = [], []
for i in range($ROUNDS):
    kept.append(torch.empty($KEEP, 262144, device="cuda"))
    dropped.append(torch.empty($DROP, 262144, device="cuda"))
dropped.clear()
''' + after, ROUNDS=rounds, KEEP=keep, DROP=drop, ASK=int(ask))
    return {"train.py": text, "serve.py": HOLDER}, Truth([OTHERS, FRAGMENTED], certain=[], blame=("hold",), asked=True)


@story
def others_and_training(dice, size, memory):
    """Another process has most of the card; batches of all lengths leave this one's free memory in pieces."""
    share = size.uniform(0.6, 0.8)
    dim, layers = size.choice((512, 768)), size.choice((2, 4))
    room = memory * (1 - share)
    batch = max(1, int(room / (4 * dim * 20 * layers * 512) * size.uniform(1.1, 1.6)))
    text = fill("import random\n" + start_holder(share, memory) + '''
random.seed($SEED)
layer = nn.TransformerEncoderLayer($DIM, 8, batch_first=True)
model = nn.TransformerEncoder(layer, $LAYERS, enable_nested_tensor=False).cuda()
opt = torch.optim.AdamW(model.parameters())
for step in range(10000):
    x = torch.randn($BATCH, random.randrange(16, 16 + step * 8 % 640 + 1), $DIM, device="cuda")
    loss = model(x).pow(2).mean()  #@asked
    opt.zero_grad()
    loss.backward()
    opt.step()
''', DIM=dim, LAYERS=layers, BATCH=batch, SEED=size.randrange(100))
    return {"train.py": text, "serve.py": HOLDER}, Truth([OTHERS], blame=("hold",), asked=True)


@story
def others_and_growth(dice, size, memory):
    """Another process has a part of the card, but this one would have filled any card."""
    share = size.uniform(0.15, 0.4)
    rows = int(memory * (1 - share) / 4 / 4096 / size.choice((10, 25, 70)))
    text = fill(start_holder(share, memory) + '''
model, kept = nn.Linear(512, 4096).cuda(), []
for step in range(100000):
    with torch.no_grad():
        kept.append(model(torch.randn($ROWS, 512, device="cuda")))  #@keep
''', ROWS=rows)
    return {"predict.py": text, "serve.py": HOLDER}, Truth([GROWTH], blame=("keep",))


# --- graphs ------------------------------------------------------------------------------------


@story
def unrolled(dice, size, memory):
    """A step that differentiates through a whole inner loop: its graphs are needed, and too large."""
    dim, inner = size.choice((256, 512, 1024)), size.choice((8, 20, 50))
    batch = part(memory / inner, size.uniform(1.3, 2.0), 4, 6, dim)
    if dice.random() < 0.5:
        step = '''
    fast = {name: p for name, p in model.named_parameters()}
    for _ in range($INNER):
        loss = torch.func.functional_call(model, fast, (x,)).pow(2).mean()  #@graph
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)  #@graph
        fast = {name: p - 0.01 * g for (name, p), g in zip(fast.items(), grads)}  #@graph
    outer = torch.func.functional_call(model, fast, (x,)).pow(2).mean()
'''
    else:
        step = '''
    state = torch.zeros($BATCH, $DIM, device="cuda")
    losses = []
    for _ in range($INNER):
        state = model(x + state)  #@graph
        losses.append(state.pow(2).mean())  #@graph
    outer = torch.stack(losses).sum()
'''
    text = fill(IMPORTS + '''
model = nn.Sequential(nn.Linear($DIM, $DIM), nn.Tanh(), nn.Linear($DIM, $DIM), nn.Tanh()).cuda()
opt = torch.optim.Adam(model.parameters())
for task in range(100):
    x = torch.randn($BATCH, $DIM, device="cuda")
''' + step + '''
    opt.zero_grad()
    outer.backward()
    opt.step()
''', DIM=dim, INNER=inner, BATCH=batch)
    # a loss that is summed over the steps and would be passed to backward after many more of them looks the same
    return {"meta.py": text}, Truth([CAPACITY, RETENTION], certain=[CAPACITY], blame=("graph",), asked=True)


@story
def kept_losses(dice, size, memory):
    """The counterpart: each step's loss is kept with its graph."""
    dim, depth = size.choice((512, 1024)), size.choice((4, 8))
    batch = part(memory / depth, 1 / size.uniform(8, 30), 4, 2, dim)
    text = fill(IMPORTS + '''
model = nn.Sequential(*[nn.Sequential(nn.Linear($DIM, $DIM), nn.GELU()) for _ in range($DEPTH)]).cuda()
opt, history = torch.optim.SGD(model.parameters(), lr=0.1), []
for step in range(10000):
    loss = model(torch.randn($BATCH, $DIM, device="cuda")).pow(2).mean()  #@keep
    opt.zero_grad()
    loss.backward(retain_graph=True)  #@keep
    opt.step()
    history.append(loss)  #@keep
''', DIM=dim, DEPTH=depth, BATCH=batch)
    return {"train.py": text}, Truth([RETENTION], blame=("keep",))


@story
def validation(dice, size, memory):
    """Training fits; validation without no_grad keeps the graphs of all of its batches."""
    dim, depth = size.choice((512, 1024)), size.choice((4, 8))
    batch = part(memory / depth, 1 / size.uniform(8, 30), 4, 2, dim)
    text = fill(IMPORTS + '''
model = nn.Sequential(*[nn.Sequential(nn.Linear($DIM, $DIM), nn.GELU()) for _ in range($DEPTH)]).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range($STEPS):
    loss = model(torch.randn($BATCH, $DIM, device="cuda")).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
total = 0
for step in range(10000):
    total = total + model(torch.randn($BATCH, $DIM, device="cuda")).pow(2).mean()  #@keep
''', DIM=dim, DEPTH=depth, BATCH=batch, STEPS=size.choice((2, 6)))
    return {"train.py": text}, Truth([RETENTION, EVAL], blame=("keep",))


# --- choice ------------------------------------------------------------------------------------


def variants(name, seed, memory_of, count=VARIANTS):
    """The variants of one program. memory_of: bytes of a card, by its name."""
    for i in range(count):
        size = random.Random("%s %d %d" % (name, seed, i))
        card = size.choice(CARDS)
        files, truth = STORIES[name](random.Random("%s %d" % (name, seed)), size, memory_of(card))
        clean, lines = memory_programs.marked(files)
        blamed = {line for mark in truth.blame for line in lines.get(mark, ())}
        program = memory_programs.Program("%s-%d-%d-%s" % (name, seed, i, card), clean,
                                          memory_programs.Label(truth.causes, truth.certain, blamed, truth.asked))
        program.gpu, program.story = "sim:" + card, "%s-%d" % (name, seed)
        yield program
