# SPDX-License-Identifier: Apache-2.0
"""A program that changes its structures all the time, while tests/hostile/reader.c reads them.

Its tensors are stand-ins: an object that leads to a storage, which leads to a block that is on no GPU. It prints the blocks, then "ready", and ends
with its standard input. Every variable that ever has tensors is in KEEPS of tests/hostile/run.py.
"""
import collections
import ctypes
import gc
import random
import struct
import sys
import threading

BLOCK, FIRST = 1 << 20, 0x700000000000
Base = type("torch._C.TensorBase", (), {"__slots__": ()})
free, kept = [], []


def spare(block):
    """A storage for a block; it outlives its tensors, as addresses of PyTorch's do."""
    storage = ctypes.create_string_buffer(struct.pack("QQQQ", 0, 0, FIRST + block * BLOCK, 0))
    kept.append(storage)
    return ctypes.addressof(storage)


class Tensor(Base):
    __slots__ = ("impl", "storage")

    def __init__(self):
        self.storage = free.pop()
        self.impl = struct.pack("Q", self.storage)

    def __del__(self):
        free.append(self.storage)


class Node:
    def __init__(self, next_node, tensor):
        self.next_node, self.tensor = next_node, tensor


free.extend(spare(n) for n in range(400))
steady = [Tensor() for _ in range(100)]
window = collections.deque([Tensor() for _ in range(40)], maxlen=40)
table, nodes, state = {}, None, type("State", (), {})()


def change(seed):
    """One thread's share."""
    global nodes, table
    dice = random.Random(seed)
    passing = []

    def batches():
        ahead = [Tensor() for _ in range(3)]
        while ahead:
            yield ahead.pop()
    feed = batches()
    while True:
        what = dice.randrange(8)
        if what == 0:
            window.append(Tensor() if len(free) > 50 else None)
        elif what == 1:
            table[dice.randrange(1000)] = [Tensor()] if len(free) > 50 else dice.random()
        elif what == 2:
            table = {k: v for k, v in list(table.items())[dice.randrange(20):]}
        elif what == 3:
            nodes = Node(nodes if dice.randrange(50) else None, Tensor() if len(free) > 50 else None)
        elif what == 4:
            passing.extend([{"n": dice.random()} for _ in range(dice.randrange(200))])
            del passing[dice.randrange(len(passing) + 1):]
        elif what == 5:
            setattr(state, "a%d" % dice.randrange(40), [Tensor()] if len(free) > 50 else {})
            if not dice.randrange(30):
                vars(state).clear()
        elif what == 6:
            made = type("Made%d" % dice.randrange(5), (), {"__slots__": ("x", "y")})()
            made.x = [Tensor()] if len(free) > 50 else gc
            state.made = made
        else:
            if next(feed, None) is None:
                feed = batches() if len(free) > 50 else iter(())


sys.setswitchinterval(0.0005)
for n in range(400):
    print(hex(FIRST + n * BLOCK), BLOCK)
print("ready", flush=True)
for n in range(3):
    threading.Thread(target=change, args=(n,), daemon=True).start()
sys.stdin.read()
