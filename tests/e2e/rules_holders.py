# SPDX-License-Identifier: Apache-2.0
"""What keeps the tensors alive when memory runs out, by the names that the program has for it, on every Python.

PyTorch's objects have stand-ins: a tensor leads to its storage and that to its block, at distances of our own. Real ones are in tests/torch.
"""
import os

from rules_blocks import under
from rules_oom import FULL
from rules_recorder import find_pythons
from toolbox import Skip, same

TENSORS = FULL + """
import struct
class OutOfMemoryError(RuntimeError): pass
Base = type("torch._C.TensorBase", (), {"__slots__": ()})
storages = []
class Tensor(Base):
    __slots__ = ("impl",)
    def __init__(self, of=None):
        if of is not None:
            self.impl = of.impl
            return
        address = made(each)
        torch.block_made(address, each, 1, 0)
        storage = ctypes.create_string_buffer(struct.pack("QQQQ", 0, 0, address, 0))
        address_of = ctypes.addressof(storage)
        storages.append(address_of), keep(storage)
        self.impl = struct.pack("Q", address_of)
def keep(storage):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(storage))
def tensors(n): return [Tensor() for _ in range(n)]
def fail():
    torch.out_of_memory(each * 20, 0)
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate ...")
"""

# Each piece keeps tensors in its own way: the code, then paths and kinds that are expected of it. No name is used twice.
PIECES = (
    ("a list", "listed = tensors(4)", "listed", "list", 4),
    ("attributes", """
class Metrics:
    def __init__(self): self.history = tensors(4)
class Trainer:
    def __init__(self): self.metrics = Metrics()
trainer = Trainer()""", "trainer.metrics.history", "list", 4),
    ("attributes of an object whose dictionary was asked for", """
class Asked:
    def __init__(self): self.one, self.kept = 1, tensors(4)
asked = Asked()
vars(asked)["more"] = 2""", "asked.kept", "list", 4),
    ("a dict of lists", "stats = {'train': [], 'val': tensors(4)}", "stats['val']", "list", 4),
    ("a dict with many entries", "cache = {n: Tensor() for n in range(4)}", "cache", "dict", 4),
    ("a list of dicts", "records = [{'loss': 1.5, 'logits': Tensor()} for _ in range(4)]", "records[*]['logits']", None, None),
    ("a list of tuples", "replay = [(Tensor(), 1) for _ in range(4)]", "replay[*][0]", None, None),
    ("a set", "chosen = set(tensors(4))", "chosen", "set", 4),
    ("a deque", """
import collections
window = collections.deque(tensors(4), maxlen=70)
for _ in range(140): window.append(window.popleft())""", "window", "deque", 4),
    ("slots", """
class Slotted:
    __slots__ = ("first", "steps")
    def __init__(self): self.first, self.steps = 1, tensors(4)
slotted = Slotted()""", "slotted.steps", "list", 4),
    ("nested dataclasses", """
import dataclasses
@dataclasses.dataclass
class Inner: memory: list = dataclasses.field(default_factory=list)
@dataclasses.dataclass
class Outer: inner: Inner = dataclasses.field(default_factory=Inner)
outer = Outer()
outer.inner.memory += tensors(4)""", "outer.inner.memory", "list", 4),
    ("a class", """
class Shared:
    seen = tensors(4)""", "Shared.seen", "list", 4),
    ("a closure", """
def make():
    inside = tensors(4)
    def step(): return inside
    return step
step = make()""", "step → closure of step(): inside", "list", 4),
    ("a hook in a dictionary", """
class Module:
    def __init__(self): self._forward_hooks = {}
def watch(module):
    outputs = tensors(4)
    module._forward_hooks[7] = lambda *a: outputs.append(a)
layer = Module()
watch(layer)""", "layer._forward_hooks[*] → closure of <lambda>(): outputs", "list", 4),
    ("a cache of a function", """
import functools
@functools.lru_cache(maxsize=None)
def encode(n): return Tensor()
for n in range(4): encode(n)""", "encode.cache", "dict", 4),
    ("a bounded cache of a function", """
@functools.lru_cache(maxsize=4)
def bounded(n): return Tensor()
for n in range(4): bounded(n)""", "bounded.cache", "dict", 4),
    ("a default argument", """
def remember(x, past=tensors(4)): past.append(x)""", "remember.__defaults__[0]", "list", 4),
    ("a partial function", """
callback = functools.partial(print, tensors(4))""", "callback.args[0]", "list", 4),
    ("a bound method", """
class Logger:
    def __init__(self): self.rows = tensors(4)
    def log(self): pass
on_step = Logger().log""", "on_step.__self__.rows", "list", 4),
    ("the frames of an exception", """
errors = []
def attempt():
    activations = tensors(4)
    raise ValueError("bad")
try: attempt()
except ValueError as error: errors.append(error)""", "errors[0].__traceback__ → frame of attempt(): activations", "list", 4),
    ("a generator", """
def batches():
    ahead = tensors(4)
    while True: yield len(ahead)
feed = batches()
next(feed)""", "feed → generator batches(): ahead", "list", 4),
    ("a coroutine", """
class Pause:
    def __await__(self): yield
async def work():
    results = tensors(4)
    await Pause()
    return results
job = work()
job.send(None)""", "job → coroutine work(): results", "list", 4),
    ("a queue", """
import queue
ready = queue.Queue()
for _ in range(4): ready.put(Tensor())""", "ready.queue", "deque", 4),
    ("a linked list", """
class Node:
    def __init__(self, before): self.before, self.state = before, Tensor()
head = None
for _ in range(5): head = Node(head)""", "head.before.state", None, None),
    ("a module", """
import types
store = types.ModuleType("store")
sys.modules["store"] = store
store.FEATURES = tensors(4)
del store""", "store.FEATURES", "list", 4),
    ("views of one", """
whole = Tensor()
views = [Tensor(whole) for _ in range(50)] + tensors(3)
del whole""", "views", "list", 53),
    ("parameters and a cache of a module", """
class Layer:
    def __init__(self): self._modules, self._parameters = {}, {}
net = Layer()
for name in ("encoder", "decoder"):
    net._modules[name] = Layer()
    net._modules[name]._parameters.update(weight=Tensor(), bias=Tensor())""", "net", "Layer", None),
    ("a thread's frame", """
import threading
begun, done = threading.Event(), threading.Event()
def worker():
    prefetched = tensors(4)
    begun.set()
    done.wait()
threading.Thread(target=worker, daemon=True).start()
begun.wait()""", "prefetched", "list", 4),
)
MORE = (
    ("a variable of a thread", """
local = threading.local()
local.scratch = tensors(4)""", "local.scratch", "list", 4),
    ("a variable of another thread", """
waits = threading.Event()
theirs = threading.local()
def other():
    theirs.results = tensors(4)
    waits.set()
    threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
waits.wait()""", "theirs.results", "list", 4),
    ("a context variable", """
import contextvars
request = contextvars.ContextVar("request")
request.set(tensors(4))""", "context[request]", "list", 4),
    ("a context of its own", """
user = contextvars.ContextVar("user")
def enter():
    user.set(tensors(4))
inner = contextvars.Context()
inner.run(enter)""", "inner[user]", "list", 4),
    ("what only weak references know beside it", """
import weakref
class Boxed:
    def __init__(self): self.content = Tensor()
weakly = weakref.WeakValueDictionary()
boxes = [Boxed() for _ in range(4)]
for n, box in enumerate(boxes): weakly[n] = box
del box
references = [weakref.ref(b) for b in boxes]""", "boxes[*].content", None, None),
    ("a dictionary with a default", """
by_step = collections.defaultdict(list)
by_step["train"] += tensors(4)""", "by_step['train']", "list", 4),
    ("an ordered dictionary", """
ordered = collections.OrderedDict((n, Tensor()) for n in range(4))""", "ordered", "OrderedDict", 4),
    ("a named tuple", """
Batch = collections.namedtuple("Batch", "inputs labels")
batch = Batch(tensors(4), None)""", "batch.inputs", "list", 4),
    ("a namespace", """
config = types.SimpleNamespace(cache=tensors(4))""", "config.cache", "list", 4),
    ("a dataclass with slots", """
import dataclasses
@dataclasses.dataclass(**({"slots": True} if sys.version_info >= (3, 10) else {}))
class Sample:
    rows: list
sample = Sample(tensors(4))""", "sample.rows", "list", 4),
    ("the result of a future", """
import concurrent.futures
future = concurrent.futures.Future()
future.set_result(tensors(4))""", "future._result", "list", 4),
    ("the arguments of a thread", """
stays = threading.Event()
def consume(given): del given; stays.wait()
consumer = threading.Thread(target=consume, args=(tensors(4),), daemon=True)
consumer.start()""", "consumer._args[0]", "list", 4),
    ("records of a logger", """
import logging, logging.handlers
memory_handler = logging.handlers.MemoryHandler(10000, flushLevel=99)
log = logging.getLogger("train"); log.propagate = False
log.addHandler(memory_handler); log.setLevel(1)
for t in tensors(4): log.info("%s", (t, 1))
del t""", "memory_handler.buffer[*].args[0][0]", None, None),
    ("an object's property that is kept", """
class Model:
    @functools.cached_property
    def features(self): return tensors(4)
model = Model(); model.features""", "model.features", "list", 4),
    ("an iterator", """
rest = iter(tensors(4)); next(rest)""", "rest", "list", 4),
    ("a method of an instance", """
class Service:
    cache = {}
    def get(self, n): return self.cache.setdefault(n, Tensor())
service = Service()
for n in range(4): service.get(n)""", "Service.cache", "dict", 4),
    ("a task that waits", """
import asyncio
async def serve():
    batch = tensors(4)
    await asyncio.sleep(3600)
loop = asyncio.new_event_loop()
task = loop.create_task(serve())
loop.run_until_complete(asyncio.sleep(0))""", "task → coroutine serve(): batch", "list", 4),
    ("a task that only its loop knows", """
async def stream():
    ahead = tensors(4)
    await asyncio.sleep(3600)
async def both():
    asyncio.ensure_future(stream())
    await asyncio.sleep(0)
other_loop = asyncio.new_event_loop()
other_loop.run_until_complete(both())""", "other_loop._scheduled[0]._args[0] → coroutine stream(): ahead", "list", 4),
    ("the result of a task", """
async def compute(): return tensors(4)
third_loop = asyncio.new_event_loop()
computed = third_loop.create_task(compute())
third_loop.run_until_complete(computed)""", "computed.result()", "list", 4),
)
HOLDERS = 8		# that a recording has


IMPORTS = "import sys, functools, collections, threading, types, contextvars, asyncio\n"


def told(box, program, python):
    box.python = python
    run = under(box, program)
    same(run.status, 1, run.err[-2000:])
    return run, box.verdict(run)["memory"].get("holders", [])


def check(box, all_pieces):
    pythons = find_pythons()
    if not pythons:
        raise Skip("no python3.9 to python3.14 here")
    for version, python in sorted(pythons.items()):
        for first in range(0, len(all_pieces), HOLDERS):
            pieces = all_pieces[first:first + HOLDERS]
            program = TENSORS + IMPORTS + "".join(code + "\n" for _, code, *_ in pieces) + "fail()\n"
            run, holders = told(box.fresh(), program, python)
            found = {h["path"]: (h["kind"], h["length"], h["blocks"]) for h in holders}
            for what, _, path, kind, length in pieces:
                same(found.get(path), (kind, length, 4), "%s, %s: %s\n%s" % (version, what, found, run.err[-1500:]))


def rule__what_keeps_tensors_is_told_by_its_name(box):
    check(box, PIECES)


def rule__what_keeps_tensors_is_told_in_less_common_places(box):
    check(box, MORE)


INSIDE = TENSORS + """
class Trainer:
    def __init__(self): self.history = tensors(30)
    def step(self): fail()
def main():
    trainer = Trainer()
    trainer.step()
main()  # <- main
"""


def rule__a_variable_of_a_function_is_named_by_the_outermost_that_has_it(box):
    for version, python in sorted(find_pythons().items()):
        box = box.fresh()
        run, holders = told(box, INSIDE, python)
        same([(h["path"], h["tensors"], h["variable_of"]["function"]) for h in holders], [("trainer.history", 30, "main")],
             "%s: %s" % (version, run.err[-1500:]))
        why = " ".join(box.verdict(run)["why"])
        same("`trainer.history`, a list of 30 (`trainer` is a variable of main(), " in why, True, why)


CAUGHT = TENSORS + """
kept = tensors(30)
try: fail()
except OutOfMemoryError: pass
raise SystemExit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


def rule__nothing_is_looked_for_when_memory_did_not_end_the_program(box):
    run = under(box, CAUGHT.replace("import cudrv", "import sys, cudrv"))
    same((run.status, box.verdict(run)["cause"]), (0, "none"), run.err[-1000:])


def rule__the_program_prints_what_it_prints_without(box):
    """Its own words and its status are the same; the wait is short."""
    run = under(box, INSIDE)
    plain = box.plain_sim(box.script(INSIDE), FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same((plain.status, plain.out), (run.status, run.out), "status, output")
    same(plain.err.strip() in run.err, True, run.err)
