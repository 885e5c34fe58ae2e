# SPDX-License-Identifier: Apache-2.0
"""Launches from random places, and records Python's own frames for each one.

    frames.py FILE SEED STEPS [THREADS [0: let nobody watch code objects]]

FILE gets one line per launch: its number (the grid's first dimension) and "file:function:line" of every frame, innermost
first. Each kind of step is one that a recorder with a cache of the last stack could get wrong.
"""
import asyncio
import ctypes
import gc
import random
import sys
import threading

import cudrv

LIMIT = 128         # frames kept of one stack
kernel = None       # set below
said = []
number = 0
count = threading.Lock()
CALLS = {"keeps the GIL": ctypes.PyDLL("libcuda.so.1").cuLaunchKernel, "gives it up": cudrv.cuda.cuLaunchKernel}
place = threading.local()


def tell(name, frame):
    """What Python reports; frames that it does not show are not walked by us either."""
    stack = []
    while frame:
        stack.append("%s:%s:%d" % (frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    said.append((name, stack[:LIMIT] + ["cut"] * (len(stack) > LIMIT)))


def take():
    global number
    with count:
        number += 1
        return number


def here():
    call = CALLS[place.dice.choice(sorted(CALLS))]
    for name in [take() for _ in range(place.dice.choice((1, 2)))]:     # twice: nothing at all has changed in between
        tell(name, sys._getframe()), call(kernel, name, 1, 1, 1, 1, 1, 0, None, None, None)


def two_lines():
    """One function called from two lines: only one instruction far from the top differs."""
    def middle():
        inner()

    def inner():
        here()
    middle()
    middle()
    if place.dice.random() < 0.5:
        inner()
    middle()


def other_way_in():
    """Frames at the addresses that others had a moment ago."""
    def first(a):
        return second(a)

    def second(b):
        here()

    def third(a):
        return fourth(a)

    def fourth(b):
        here()
    for _ in range(3):
        first(1)
        third(1)


def recursion():
    def down(n):
        if place.dice.random() < 0.3:
            here()
        if n:
            down(n - 1)
            if place.dice.random() < 0.3:
                here()
    down(place.dice.randrange(20))


def deep():
    """About the most frames that are kept, and beyond."""
    def down(n):
        if n:
            down(n - 1)
        else:
            here()
            here()
        if place.dice.random() < 0.02:
            here()
    down(place.dice.choice((110, 120, 122, 123, 124, 125, 126, 127, 128, 129, 200)))


def generators():
    def numbers():
        for n in range(3):
            here()
            yield n
        yield from other()

    def other():
        here()
        yield 3
        here()

    made = [numbers(), numbers()]
    for each in zip(*made):
        if place.dice.random() < 0.5:
            here()
    for generator in made:
        here()
        sum(generator)
    [here() for _ in range(2)]
    list(map(lambda _: here(), range(2)))


def resumed():
    """A generator that launches by itself, resumed with and without a function in between: the frame of that one is
    gone, but what it held is still there, and all the others are the same."""
    call, names = CALLS["keeps the GIL"], [take() for _ in range(8)]

    def launches():
        while names:
            name = names.pop()
            call(kernel, name, 1, 1, 1, 1, 1, 0, None, None, None), tell(name, sys._getframe())
            yield

    def through(one):
        next(one)

    generator = launches()
    for resume in [through, next] * 4:
        resume(generator)


def tops():
    """Two functions that launch by themselves, from frames at the same place."""
    call = CALLS["keeps the GIL"]

    def one(name):
        call(kernel, name, 1, 1, 1, 1, 1, 0, None, None, None), tell(name, sys._getframe())

    def other(name):
        call(kernel, name, 1, 1, 1, 1, 1, 0, None, None, None), tell(name, sys._getframe())

    functions = [one, other, one, one, other, other]
    for function, name in list(zip(functions, [take() for _ in functions])):
        function(name)


def coroutines():
    async def leaf(n):
        here()
        await asyncio.sleep(0)
        here()

    async def main():
        await asyncio.gather(*(leaf(n) for n in range(3)))
        here()
        await leaf(0)
    asyncio.run(main())


def exceptions():
    def raises(n):
        try:
            if n:
                raises(n - 1)
            raise ValueError
        except ValueError:
            if place.dice.random() < 0.5:
                here()
            raise
        finally:
            here()
    try:
        raises(place.dice.randrange(5))
    except ValueError:
        here()


def replaced():
    """Code objects that come to stand where others stood: of one name, size and first line, with the same
    instructions; all that differs is the line of one."""
    for _ in range(12):
        exec(compile("\n" * place.dice.randrange(30) + "here()\n", "replaced.py", "exec"), {"here": here})
        if place.dice.random() < 0.2:
            gc.collect()


def replaced_function():
    for _ in range(12):
        names = {"here": here}
        exec(compile("def f():\n%s    here()\n" % ("\n" * place.dice.randrange(30)), "function.py", "exec"), names)
        names["f"]()
        if place.dice.random() < 0.5:
            names.clear()
        if place.dice.random() < 0.2:
            gc.collect()


def callbacks():
    """C between the frames."""
    sorted(range(3), key=lambda n: here() or n)

    class Here:
        def __call__(self):
            here()

        def __eq__(self, other):
            here()
            return True
    Here()()
    [Here()].index(Here())


STEPS = [two_lines, other_way_in, recursion, deep, generators, resumed, tops, coroutines, exceptions, callbacks]
REPLACING = [replaced, replaced_function]


def mixed(n):
    """Steps within steps, so that what is outside changes, too."""
    if n:
        mixed(n - 1)
    place.dice.choice(STEPS)()
    if n and place.dice.random() < 0.2:
        mixed(n - 1)


def work(context, seed, steps):
    cudrv.call("cuCtxSetCurrent", context)
    place.dice = random.Random(seed)
    for _ in range(steps):
        mixed(place.dice.randrange(4))


def take_watchers():
    """Python notifies at most eight watchers about destroyed code objects; abs() takes all eight, so that the recorder gets none."""
    address = ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p)
    for _ in range(8):
        assert ctypes.pythonapi.PyCode_AddWatcher(address) >= 0


def main(path, seed, steps, threads=1, watchers=True):
    global kernel
    if watchers:
        STEPS.extend(REPLACING)
    else:
        take_watchers()
    context = cudrv.init()
    kernel = cudrv.kernel("nop")
    sys.setswitchinterval(1e-4)
    extra = [threading.Thread(target=work, args=(context, seed + n, steps)) for n in range(1, threads)]
    for thread in extra:
        thread.start()
    work(context, seed, steps)
    for thread in extra:
        thread.join()
    cudrv.synchronize()
    with open(path, "w", encoding="utf-8") as out:
        for name, stack in said:
            out.write("%d %s\n" % (name, " ".join(stack)))


main(sys.argv[1], *map(int, sys.argv[2:]))
