# SPDX-License-Identifier: Apache-2.0
"""Loops in every style, and the program's own count of their turns.

    turns.py FILE [STYLE]

Every event is a block of PyTorch's allocator that stays alive. FILE gets one line of JSON per block: its number, the
style, and for each loop around it, innermost first, the loop's name and the turn that the program itself counted. A loop
begins at the line with the comment `# loop NAME`.
"""
import asyncio
import contextlib
import ctypes
import functools
import itertools
import json
import os
import signal
import sys
import threading
import weakref

import cudrv
import trainer

torch = ctypes.CDLL(os.environ["FAKE_TORCH"])
torch.block_made.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
torch.make_block_at.argtypes = [ctypes.c_uint64]
torch.make_block_here.argtypes = [ctypes.c_uint64]
made = torch.block_made
cudrv.init()
segment = cudrv.alloc(20 << 20)
said, lock, style = [], threading.Lock(), None


def at(*turns):
    """The address of the next block."""
    with lock:
        said.append({"block": len(said) + 1, "style": style, "turns": turns})
        return segment + 512 * len(said)


def here(*turns):
    made(at(*turns), 512, 1, 0)


def with_argument(_, *turns):
    made(at(*turns), 512, 1, 0)


STYLES = []


def loops(function):
    STYLES.append(function)
    return function


@loops
def for_range():
    for i in range(6):  # loop for-range
        here(("for-range", i + 1))


@loops
def for_range_from():
    for i in range(3, 9):  # loop for-range-from
        here(("for-range-from", i - 2))


@loops
def for_list():
    for n, _ in [(1, "a"), (2, "b"), (3, "c")]:  # loop for-list
        here(("for-list", n))
        here(("for-list", n))


@loops
def for_dict_and_set():
    n = 0
    for _ in {"a": 1, "b": 2, "c": 3}.items():  # loop for-dict
        n += 1
        here(("for-dict", n))
    n = 0
    for _ in {1, 2, 3}:  # loop for-set
        n += 1
        here(("for-set", n))


@loops
def single_call():
    """The frame of the loop never moves."""
    class Batch:
        def __init__(self, n):
            self.n = n
    for batch in [Batch(1), Batch(2), Batch(3), Batch(4)]:  # loop single-call
        here(("single-call", batch.n))


@loops
def single_op():
    addresses = [at(("single-op", n)) for n in range(1, 7)]
    for address in addresses:  # loop single-op
        made(address, 512, 1, 0)


@loops
def nested():
    for i in range(3):  # loop nested-outer
        for j in range(4):  # loop nested-inner
            here(("nested-inner", j + 1), ("nested-outer", i + 1))


@loops
def nested_functions():
    def inner(i):
        for j in (1, 2):  # loop called-inner
            here(("called-inner", j), ("called-outer", i))
    for i in range(1, 5):  # loop called-outer
        inner(i)


@loops
def while_counter():
    n = 0
    while n < 5:  # loop while-counter
        n += 1
        here(("while-counter", n))


@loops
def while_true_break():
    n = 0
    while True:  # loop while-true
        n += 1
        here(("while-true", n))
        if n == 5:
            break


@loops
def while_nothing_changes():
    """The same stack, the same variables."""
    addresses = [at(("while-pop", n)) for n in range(5, 0, -1)]
    while addresses:  # loop while-pop
        made(addresses.pop(), 512, 1, 0)


@loops
def while_nested():
    def inner(n):
        m = 0
        while m < 3:  # loop while-inner
            m += 1
            here(("while-inner", m), ("while-outer", n))
    n = 0
    while n < 4:  # loop while-outer
        n += 1
        inner(n)


@loops
def while_in_while():
    n = 0
    while n < 3:  # loop while-around
        n += 1
        m = 0
        while m < 4:  # loop while-within
            m += 1
            here(("while-within", m), ("while-around", n))
            here(("while-within", m), ("while-around", n))


@loops
def while_in_while_between():
    n = 0
    while n < 3:  # loop while-around2
        n += 1
        here(("while-around2", n))
        m = 0
        while m < 4:  # loop while-within2
            m += 1
            here(("while-within2", m), ("while-around2", n))
            here(("while-within2", m), ("while-around2", n))
        here(("while-around2", n))


@loops
def for_in_while():
    n = 0
    while n < 3:  # loop while-epochs
        n += 1
        for m in range(1, 5):  # loop for-batches
            here(("for-batches", m), ("while-epochs", n))
            here(("for-batches", m), ("while-epochs", n))


@loops
def enumerated():
    for i, _ in enumerate(iter(["a", "b", "c"])):  # loop enumerate
        here(("enumerate", i + 1))
    for i, _ in enumerate(["a", "b", "c"], 1):  # loop enumerate-from
        here(("enumerate-from", i))


@loops
def zipped():
    for n, _ in zip([1, 2, 3], "abc"):  # loop zip
        here(("zip", n))


@loops
def reversed_list():
    for n in reversed([3, 2, 1]):  # loop reversed
        here(("reversed", n))


@loops
def over_a_string():
    for c in "1234":  # loop string
        here(("string", int(c)))


@loops
def over_a_generator():
    def numbers():
        for n in range(1, 5):  # loop generator-body
            yield n
    for n in numbers():  # loop generator
        here(("generator", n))


@loops
def in_a_generator():
    def numbers():
        for n in range(1, 5):  # loop working-generator
            here(("working-generator", n), ("worked-for", n))
            yield n
    for n in numbers():  # loop worked-for
        here(("worked-for", n))


@loops
def generator_expression():
    sum(here(("expression", n)) or 0 for n in range(1, 5))  # loop expression


@loops
def comprehensions():
    [here(("list-comprehension", n)) for n in range(1, 5)]  # loop list-comprehension
    {n: here(("dict-comprehension", n)) for n in [1, 2, 3]}  # loop dict-comprehension
    made(at(), 512, 1, [here(("in-a-call", n)) for n in (1, 2, 3)] and 0)  # loop in-a-call


@loops
def mapped():
    list(map(lambda n: here(("map", n)), [1, 2, 3, 4]))  # loop map


@loops
def mapped_in_a_loop():
    for i in range(1, 4):  # loop map-outer
        list(map(functools.partial(with_argument, None), [("map-outer", i)] * 3))


class Dropped(weakref.ref):
    """Its end is an event of C code: none of Python's functions runs then."""


class Object:
    pass


def drop_makes_a_block(thing):
    torch.make_block_at(at())
    gone = Dropped(thing, torch.make_block)
    gone._as_parameter_ = 0     # what it is called with
    return gone


@loops
def while_unpacks():
    """Each store drops what the turn before had put there. Once it has run some turns, CPython stores both in one instruction."""
    kept, pairs = [], []
    for n in range(14, 0, -1):
        pairs.append((Object(), Object()))
        for thing in pairs[-1] if n < 14 else ():    # the last stay
            kept.append(Dropped(thing, torch.make_block_here))
            kept[-1]._as_parameter_ = at(("while-unpack", n + 1))
            del thing
    while pairs:  # loop while-unpack
        a, b = pairs.pop()
        here(("while-unpack", 14 - len(pairs)))


@loops
def mapped_with_locals():
    ends = []

    def step(n):
        thing = Object()
        here(("map-locals", n))
        ends.append(drop_makes_a_block(thing))
        here(("map-locals", n))

    list(map(step, [1, 2, 3, 4, 5, 6]))  # loop map-locals


@loops
def mapped_over_a_generator():
    def batches():
        for n in range(1, 7):  # loop map-source
            made(at(("map-source", n)), 512, 1, 0)
            yield n

    def step(n):
        made(at(("map-generator", n)), 512, 1, 0)

    list(map(step, batches()))  # loop map-generator


@loops
def sorted_by_a_key():
    sorted([3, 1, 2], key=lambda n: here() or n)


@loops
def recursion():
    def down(n):
        here()
        if n:
            down(n - 1)
    down(5)


@loops
def recursion_in_a_loop():
    def down(i, n):
        here(("recursion-outer", i))
        if n:
            down(i, n - 1)
    for i in range(1, 4):  # loop recursion-outer
        down(i, 3)


@loops
def try_except():
    for n in range(1, 7):  # loop try
        try:
            here(("try", n))
            if n % 2:
                raise ValueError
            here(("try", n))
        except ValueError:
            here(("try", n))
        finally:
            here(("try", n))
    here()


@loops
def while_try_except():
    n = 0
    while n < 5:  # loop while-try
        n += 1
        try:
            if n % 2:
                raise ValueError
            here(("while-try", n))
        except ValueError:
            here(("while-try", n))
    here()


@loops
def retry():
    for n in range(1, 4):  # loop retry
        try:
            here(("retry", n))
            raise RuntimeError
        except RuntimeError:
            continue
    here()


@loops
def continue_and_break():
    for n in range(1, 9):  # loop continue
        if n % 3 == 0:
            continue
        here(("continue", n))
        if n == 7:
            break
    else:
        here()


@loops
def for_else():
    for n in range(1, 4):  # loop for-else
        here(("for-else", n))
    else:
        here()
    here()


@loops
def eventless_turns():
    for n in range(1, 30):  # loop eventless
        if n > 1 and n % 7:
            continue
        here(("eventless", n))


@loops
def branches():
    for n in [1, 2, 3, 4]:  # loop branches
        if n % 2:
            here(("branches", n))
        else:
            here(("branches", n))


@loops
def methods():
    class Model:
        def forward(self, n):
            self.layer(n)

        def layer(self, n):
            here(("methods", n))
    model = Model()
    for n in range(1, 5):  # loop methods
        model.forward(n)


@loops
def decorated():
    def quiet(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)
        return wrapper

    @quiet
    def step(n):
        here(("decorated", n))
    for n in range(1, 5):  # loop decorated
        step(n)


@loops
def context_managers():
    with contextlib.nullcontext():
        for n in range(1, 5):  # loop in-with
            with contextlib.nullcontext(), contextlib.suppress(KeyError):
                here(("in-with", n))
                for m in (1, 2):  # loop with-inner
                    here(("with-inner", m), ("in-with", n))
                raise KeyError


@loops
def loader():
    class Loader:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 5:
                raise StopIteration
            here(("loader", self.n))
            return self.n
    for n in Loader():  # loop loader
        here(("loader", n))
        here(("loader", n))


@loops
def epochs_over_a_loader():
    def batches():
        yield 1
        yield 2
        yield 3
    for epoch in range(1, 4):  # loop epochs
        for batch in batches():  # loop batches
            here(("batches", batch), ("epochs", epoch))


@loops
def getitem():
    class Data:
        def __getitem__(self, i):
            if i == 4:
                raise IndexError
            return i + 1
    for n in Data():  # loop getitem
        here(("getitem", n))


@loops
def library():
    trainer.Trainer(lambda epoch, index, _: here(("fit-batches", index + 1), ("fit-epochs", epoch + 1))).fit(3, [1, 2, 3])


@loops
def threads():
    def work():
        for n in range(1, 20):  # loop thread
            here(("thread", n))
    running = [threading.Thread(target=work) for _ in range(3)]
    for t in running:
        t.start()
    for t in running:
        t.join()


@loops
def executed():
    """Twice the same text: other code objects, at other addresses."""
    for i in (1, 2, 3):  # loop exec-outer
        exec(compile("\n" * 9000 + "for n in range(2): here(('exec', n + 1), ('exec-outer', i))", "<executed>", "exec"),
             {"here": here, "i": i})


@loops
def two_calls_on_one_line():
    for n in [1, 2, 3, 4]:  # loop two-calls
        here(("two-calls", n)), here(("two-calls", n))


@loops
def lambdas():
    body = lambda n: (here(("lambda", n)), here(("lambda", n)))  # noqa: E731
    for n in range(1, 4):  # loop lambda
        body(n)


@loops
def class_body():
    class Body:
        for n in range(1, 4):  # loop class-body
            here(("class-body", n))


@loops
def partial():
    step = functools.partial(with_argument, "x")
    for n in [1, 2, 3]:  # loop partial
        step(("partial", n))


@loops
def walrus():
    values = iter([1, 2, 3, 4])
    while (n := next(values, None)):  # loop walrus
        here(("walrus", n))


MATCH = """
def matched():
    for n in [1, 2, 3, 4, 5]:  # loop match
        match n:
            case 1 | 4:
                here(("match", n))
            case 2:
                pass
            case _:
                here(("match", n))
"""
if sys.version_info >= (3, 10):
    exec(compile(MATCH, "<match>", "exec"), globals())
    loops(matched)      # noqa: F821


@loops
def chained():
    for n in itertools.chain([1, 2], [3, 4]):  # loop chain
        here(("chain", n))
    for n in itertools.islice(itertools.count(1), 4):  # loop islice
        here(("islice", n))
    for n in itertools.count():  # loop count
        if n == 3:
            break
        here(("count", n + 1))
    for n, _ in enumerate(itertools.product("ab", "cd"), 1):  # loop product
        here(("product", n))


@loops
def progress_bar():
    def bar(iterable):
        shown = 0
        for item in iterable:
            yield item
            shown += 1
    for n in bar([1, 2, 3, 4]):  # loop bar
        here(("bar", n))


@loops
def hooks():
    """C code calls a function of the program, as autograd does."""
    call = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda n: here(("hooks", n)))
    for n in (1, 2, 3):  # loop hooks
        call(n)


@loops
def signal_handler():
    signal.signal(signal.SIGUSR1, lambda number, frame: here(("signal", turn[0])))
    turn = [0]
    for n in range(1, 4):  # loop signal
        turn[0] = n
        here(("signal", n))
        os.kill(os.getpid(), signal.SIGUSR1)
        here(("signal", n))


@loops
def asynchronous():
    async def numbers():
        for n in range(1, 5):
            await asyncio.sleep(0)
            yield n

    async def main():
        async for n in numbers():  # loop async-for
            here(("async-for", n))
            await asyncio.sleep(0)
        for n in range(1, 4):  # loop awaiting
            await asyncio.sleep(0)
            here(("awaiting", n))

    async def other():
        for n in range(1, 6):  # loop other-task
            here(("other-task", n))
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(main(), other())
    asyncio.run(both())


@loops
def backward():
    """A thread without Python frames allocates while this one waits."""
    for n in [1, 2, 3]:  # loop backward
        here(("backward", n))
        node = torch.forward()
        torch.make_block_at(at(("backward", n)))
        torch.backward(node, torch.make_block)


@loops
def many_variables():
    a = b = c = d = e = f = g = h = 0
    for n in range(1, 5):  # loop variables
        a, b, c, d, e, f, g, h = b + n, c, d, e, f, g, h, a
        here(("variables", n))
    here()


@loops
def one_after_another():
    for n in [1, 2, 3]:  # loop first-of-two
        here(("first-of-two", n))
    for n in [1, 2, 3]:  # loop second-of-two
        here(("second-of-two", n))


@loops
def a_function_twice():
    def work():
        for n in [1, 2, 3]:  # loop twice-inner
            here(("twice-inner", n))
    work()
    work()


for style_function in STYLES:
    style = style_function.__name__
    if sys.argv[2:] and style not in sys.argv[2:]:
        continue
    style_function()
with open(sys.argv[1], "w", encoding="utf-8") as stream:
    for line in said:
        line["address"] = segment + 512 * line["block"]
        stream.write(json.dumps(line) + "\n")
