#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our model of PyTorch's caching allocator (src/allocator) against the real one, on the simulated GPU.

    tests/torch/allocator.py [--build build] [--torch FOLDER…] [--events 100000] [--seed 1] [--case N] [--only WHAT]

Random programs allocate and delete on several streams, with random settings, on cards that are too small. What the real
allocator answers, and everything that its own trace says it did (segments, mappings, blocks that became free), goes as text to
build/tests/allocator_replay, which gives the same requests to the model and compares. Without --torch, the wheel of check.py.
"""
import argparse
import ctypes
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
PER_CASE = 20000
EDGES = [1, 511, 512, 513, 1024, MIB - 512, MIB - 1, MIB, MIB + 1, 2 * MIB, 10 * MIB - 512, 10 * MIB - 511, 10 * MIB, 10 * MIB + 1,
         19 * MIB + 1, 20 * MIB, 20 * MIB + 1, 21 * MIB, 32 * MIB, 64 * MIB - 1]
ACTIONS = {"segment_alloc": "A", "segment_free": "F", "segment_map": "M", "segment_unmap": "U"}


# ---- in the program that has PyTorch ------------------------------------------------------------------

def settings_kept(rng, minor, expandable):
    """Options that do not change: when max_split_size_mb comes later, PyTorch frees parts of segments, which is an error."""
    words = []
    large = 20
    if minor >= 11:
        # a reservation that was never mapped outlives empty_cache, and its pages keep their size: one for all cases of a process
        large = Case.page if expandable else rng.choice([20, 20, 11, 24, 64])
        words.append("large_segment_size_mb:%d" % large)
    if rng.random() < 0.4 and (not expandable or minor > 4):
        words.append("max_split_size_mb:%d" % rng.choice([large + 1, large + 12, large + 44]))
    return words, large


def settings_text(rng, minor, expandable, kept):
    """Options of this release; those that stay from one text to the next are always there."""
    words, large = kept
    words = words + ["expandable_segments:%s" % expandable]
    if minor >= 6:
        words.append("max_non_split_rounding_mb:%d" % rng.choice([large + 1, large + 1, large + 20]))
    if rng.random() < 0.3:
        words.append("garbage_collection_threshold:%s" % rng.choice(["0.3", "0.6", "0.8", "0.95"]))
    if rng.random() < 0.4:
        words.append("roundup_power2_divisions:%s" % rng.choice(
            ["2", "4", "8", "16", "[1:4,2:2,4:8,>:1]", "[8:2,16:8,>:4]", "[256:1,512:2,1024:4,>:8]", "[1:0,4:4,>:0]"]))
    rng.shuffle(words)
    return ",".join(words)


class Holder:
    """Keeps streams from going on. A process beside this one lets them go when an operation waits for them."""

    SLOTS = 16000

    def __init__(self, streams):
        self.shared = mmap.mmap(-1, 64 * (self.SLOTS + 16))
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.shared))
        # 0: beats; 8…: for each stream that is held, the mutex that holds it
        self.words = (ctypes.c_uint64 * 32).from_buffer(self.shared)
        self.libc = ctypes.CDLL(None)
        self.streams, self.used = streams, 0
        self.attribute = ctypes.create_string_buffer(64)
        self.libc.pthread_mutexattr_init(self.attribute)
        self.libc.pthread_mutexattr_setpshared(self.attribute, 1)
        parent = os.getpid()
        if os.fork() == 0:
            self.watch(parent)
        self.driver = None

    def place(self, slot):
        return ctypes.c_void_p(self.base + 64 * (slot + 16))

    def watch(self, parent):
        beats, still = None, 0
        while os.getppid() == parent:
            time.sleep(0.03)
            slots = [self.words[8 + i] for i in range(self.streams)]
            still = still + 1 if beats == self.words[0] else 0
            beats = self.words[0]
            if still >= 10:
                for i, slot in enumerate(slots):
                    self.let_go(i, slot)
                still = 0
        os._exit(0)

    def hold(self, i, handle):
        if not self.driver:
            with open("/proc/self/maps", encoding="ascii") as f:
                self.driver = ctypes.CDLL([line.split()[-1] for line in f if "libcuda.so.1" in line][0])
        # a new one each time: both processes may let go at once, and that must not count for the next
        self.used = self.used % (self.SLOTS - 1) + 1
        self.libc.pthread_mutex_init(self.place(self.used), self.attribute)
        self.libc.pthread_mutex_lock(self.place(self.used))
        self.words[8 + i] = self.used
        code = self.driver.cuLaunchHostFunc(ctypes.c_void_p(handle), self.libc.pthread_mutex_lock, self.place(self.used))
        assert code == 0, code

    def is_held(self, i):
        return self.words[8 + i] != 0

    def let_go(self, i, slot=None):
        """If it is still this mutex that holds the stream: the other process may be late."""
        slot = slot or self.words[8 + i]
        if slot and self.words[8 + i] == slot:
            self.words[8 + i] = 0
            self.libc.pthread_mutex_unlock(self.place(slot))    # of which a signal does not make an end, as of a semaphore


class Block:
    __slots__ = ("addr", "size", "stream", "tensor", "uses", "recorded")

    def __init__(self, addr, size, stream, tensor):
        self.addr, self.size, self.stream, self.tensor, self.uses, self.recorded = addr, size, stream, tensor, set(), False


class Case:
    """One random program; `lines` is what the model is given."""
    next_pool = 0
    page = 20       # MiB, of large expandable segments; the driver refuses odd numbers

    def __init__(self, torch, seed, what, holder, streams):
        self.torch, self.what, self.holder = torch, what, holder
        self.rng = random.Random("%s-%s" % (seed, what))
        self.minor = int(torch.__version__.split(".")[1])
        self.streams = streams[:self.rng.choice([1, 1, 2, 4])]
        self.handles = [s.cuda_stream for s in self.streams]
        self.blocks, self.ops, self.live = [], [], 0
        self.expandable = what == "expandable" or what in ("mixed", "training") and self.rng.random() < 0.5
        self.held, self.captured = set(), False
        self.pools, self.active, self.graph, self.lender = {}, [], None, None
        self.finishing = False
        self.alloc = torch._C._cuda_cudaCachingAllocator_raw_alloc
        self.delete = torch._C._cuda_cudaCachingAllocator_raw_delete
        self.kinds = self.rng.choices(range(6), weights=[self.rng.random() ** 2 for _ in range(6)], k=64)
        self.favorites = [self.size_any(self.rng.randrange(6)) for _ in range(12)]

    def size_any(self, kind):
        rng = self.rng
        if kind == 0:
            return rng.randint(1, 8192)
        if kind == 1:
            return rng.randint(1, MIB)
        if kind == 2:
            return rng.randint(MIB, 10 * MIB)
        if kind == 3:
            return rng.randint(10 * MIB, 40 * MIB)
        if kind == 4:
            return rng.choice(EDGES)
        return rng.randint(1, 1 << rng.randint(1, 26))

    def size(self):
        return self.rng.choice(self.favorites) if self.rng.random() < 0.4 else self.size_any(self.rng.choice(self.kinds))

    def pool_of(self, stream):
        order = self.active if self.minor < 10 else self.active[::-1]
        return next((pool for pool, at in order if at in (stream, None)), (0, 0))

    # operations: done here, and noted

    def set_current(self, i):
        self.torch.cuda.set_stream(self.streams[i])
        self.note_captured(self.handles[i])

    def note_captured(self, current):
        now = bool(self.graph) and current == self.graph[2]
        if now != self.captured:
            self.ops.append(("cb",) if now else ("ce",))
            self.captured = now


    def do_alloc(self):
        size, i = self.size(), self.rng.randrange(len(self.handles))
        tensor, addr, stream = None, 0, self.handles[i]
        pool = self.pool_of(stream)
        try:
            # from 2.15 on, an event of a captured stream is asked for when another one is current, which is an error
            if self.what in ("streams", "mixed") and self.rng.random() < 0.7 and not (self.graph and self.minor > 11):
                self.set_current(i)
                tensor = self.torch.empty(size, dtype=self.torch.uint8, device="cuda")
                addr = tensor.data_ptr()
            else:
                addr = self.alloc(size, stream)
        except self.torch.cuda.OutOfMemoryError:
            pass
        self.ops.append(("a", addr, size, stream) + pool)
        if addr:
            self.blocks.append(Block(addr, size, stream, tensor))
            self.live += size
        elif self.rng.random() < 0.7:
            for _ in range(self.rng.randint(1, len(self.blocks) // 2 + 1)):
                self.do_delete()

    def do_delete(self):
        if not self.blocks:
            return
        end = self.rng.random()
        self.delete_one(len(self.blocks) - 1 if end < 0.3 else 0 if end < 0.4 else self.rng.randrange(len(self.blocks)))

    def delete_one(self, i):
        block = self.blocks[i]
        self.blocks[i] = self.blocks[-1]
        self.blocks.pop()
        self.live -= block.size
        self.ops.append(("d", block.addr, bool(block.uses)))
        if block.tensor is not None:
            block.tensor = None
            for s in block.uses:
                if s not in self.held and not self.graph:
                    self.streams[s].synchronize()
        else:
            self.delete(block.addr)

    def do_record(self):
        block = self.rng.choice(self.blocks) if self.blocks else None
        if block and block.tensor is not None:
            i = self.rng.randrange(len(self.handles))
            block.tensor.record_stream(self.streams[i])
            self.ops.append(("r", block.addr, self.handles[i]))
            if self.handles[i] != block.stream:
                block.uses.add(i)
                block.recorded |= bool(self.active)

    def do_hold(self):
        i = self.rng.randrange(len(self.handles))
        if i in self.held:
            self.let_go(i)
        elif self.handles[i] and len(self.held) < 2 and not self.graph:
            self.hold(i)

    def hold(self, i):
        self.holder.hold(i, self.handles[i])
        self.held.add(i)
        self.ops.append(("h", self.handles[i]))

    def let_go(self, i):
        if i in self.held:
            self.holder.let_go(i)
            self.streams[i].synchronize()
            self.held.discard(i)
            self.ops.append(("u", self.handles[i]))

    # Private pools: of graphs that are captured, of torch.cuda.MemPool, and bare ones. `pools` are those with users: for each the
    # graph or MemPool, and how many of our own users it has. `active` are those that are allocated to, and for which stream.

    def end_of(self, pool):
        getattr(self.torch._C, "_cuda_endAllocateToPool" if self.minor >= 8 else "_cuda_endAllocateCurrentStreamToPool")(0, pool)
        self.ops.append(("pe",) + pool)

    def pool_id(self):
        Case.next_pool += 1
        return self.rng.choice([(7000 + Case.next_pool, 0), (0, 7000 + Case.next_pool)])

    def do_pool(self):
        way = self.rng.random()
        if self.graph and self.what == "pools" and way < 0.25:
            return self.set_current(self.rng.randrange(len(self.streams)))
        if self.active and way < 0.45:
            self.pool_end(self.rng.randrange(len(self.active)))
        elif self.pools and way < 0.7:
            pool = self.rng.choice(sorted(self.pools))
            if pool not in [p for p, _ in self.active]:
                self.pool_drop(pool)
        elif way < 0.8 and not self.graph:
            self.graph_begin()
        elif self.minor >= 6 and way < 0.9:
            self.mempool_make()
        elif self.minor >= 6 and len(self.active) < 3:
            self.pool_begin()

    def pool_begin(self):
        known = [p for p in sorted(self.pools) if p not in [q for q, _ in self.active]]
        pool = self.rng.choice(known) if known and self.rng.random() < 0.7 else self.pool_id()
        if self.minor >= 8:
            self.torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool)
        else:
            self.torch._C._cuda_beginAllocateToPool(0, pool)
        self.active.append((pool, None))
        self.ops.append(("pb",) + pool)
        self.pools.setdefault(pool, [None, 0])[1] += 1

    def pool_end(self, i):
        pool, _ = self.active[i]
        # PyTorch keeps uses that were recorded in a capture by the address of its own object for the block, and forgets them only if
        # the block is deleted before the capture ends
        for block in [b for b in self.blocks if b.recorded]:
            self.delete_one(self.blocks.index(block))
        if self.graph and self.graph[0] == pool:
            self.set_current(self.handles.index(self.graph[2]))
            self.graph[1].capture_end()
            self.ops.append(("pe",) + pool)
            self.graph = None
            self.note_captured(None)
        else:
            self.end_of(pool)
        self.active.pop(i)
        if not self.graph and (not self.active or self.minor > 11):
            self.do_later()

    def do_later(self):
        """Lets events that were left for later be recorded in a request, by streams that are held, so that none is passed in it."""
        others = [k for k in range(len(self.streams)) if k not in self.held]
        for k in others:
            self.hold(k)
        addr = self.alloc_for(8, 0)
        if addr:
            self.ops.append(("d", addr, False))
            self.delete(addr)
        self.forced()
        for k in others:
            self.let_go(k)

    def pool_drop(self, pool):
        made, users = self.pools[pool]
        if made and made is self.lender and self.minor < 11 and not self.finishing:
            return
        if users:
            self.torch._C._cuda_releasePool(0, pool)
            self.ops.append(("pd",) + pool)
            self.pools[pool][1] -= 1
            if users == 1 and not made:
                del self.pools[pool]
        elif isinstance(made, self.torch.cuda.CUDAGraph):
            made.reset()
            del self.pools[pool], made
            self.ops += [("pd",) + pool, ("?", 0, 0)]
            self.do_snapshot()
        elif not self.active:
            if made is self.lender:
                self.lender = None
            del self.pools[pool], made
            self.ops += [("pd",) + pool, ("e",) + pool]
            self.do_snapshot()

    def alloc_for(self, size, i):
        addr, pool = 0, self.pool_of(self.handles[i])
        try:
            addr = self.alloc(size, self.handles[i])
        except self.torch.cuda.OutOfMemoryError:
            pass
        self.ops.append(("a", addr, size, self.handles[i]) + pool)
        return addr

    def graph_begin(self):
        i = self.rng.randrange(len(self.handles))
        if not self.handles[i] or self.held:
            return
        graph, pool = self.torch.cuda.CUDAGraph(), tuple(self.torch.cuda.graph_pool_handle())
        self.set_current(i)
        # so that there is memory for what follows
        small = [self.alloc_for(8, i), self.alloc_for(8, i)]
        for addr in filter(None, small):
            self.ops.append(("d", addr, False))
            self.delete(addr)
        if not all(small):
            return
        # what PyTorch allocates for its random numbers, it does before
        before = ("?",) + self.pool_of(self.handles[i])
        graph.capture_begin(pool, capture_error_mode="relaxed")
        self.ops.append(before)
        self.do_snapshot()
        self.graph = (pool, graph, self.handles[i])
        self.pools[pool] = [graph, 0]
        self.active.append((pool, self.handles[i]))
        self.ops.append(("pb",) + pool)
        self.note_captured(self.handles[i])

    def mempool_make(self):
        kind, words = 0, {}
        # 2.8 does not forget the pool when it is gone, and then fails
        if (self.minor >= 11 or self.minor >= 8 and self.last) and self.rng.random() < 0.5 and not self.lender:
            kind, words = kind | 2, dict(words, use_on_oom=True)
        if self.minor >= 10 and self.rng.random() < 0.3:
            kind, words = kind | 4, dict(words, no_split=True)
        made = self.torch.cuda.MemPool(**words)
        if kind & 2:
            self.lender = made
        self.pools[tuple(made.id)] = [made, 0]
        self.ops.append(("pu",) + tuple(made.id) + (kind,))

    def do_empty(self):
        # an error where pools are in use, and where a captured stream would have to be waited for
        if self.active and self.minor < 8 or self.graph:
            return
        self.torch.cuda.empty_cache()
        self.ops.append(("e", 0, 0))
        self.do_snapshot()

    def do_fraction(self):
        fraction = self.rng.choice([1.0, 1.0, 0.9, 0.7, 0.5, self.rng.random()])
        self.torch.cuda.set_per_process_memory_fraction(fraction)
        self.ops.append(("l", repr(fraction)))

    def do_settings(self):
        text = settings_text(self.rng, self.minor, self.expandable and self.rng.random() < 0.8, self.kept)
        self.torch.cuda.memory._set_allocator_settings(text)
        self.ops.append(("s", text))

    def do_snapshot(self):
        self.ops.append(("S", self.torch.cuda.memory_snapshot()))

    def forced(self):
        """The last operation waited for streams that were held."""
        for i in sorted(self.held):
            if not self.holder.is_held(i):
                self.let_go(i)

    def step(self):
        rng, way = self.rng, self.rng.random()
        self.holder.words[0] += 1
        if way < 0.0008:
            self.do_empty()
        elif way < 0.001:
            self.do_snapshot()
        elif way < 0.0012:
            self.do_fraction()
        elif way < 0.0014:
            self.do_settings()
        elif way < 0.002:
            for _ in range(rng.randint(1, len(self.blocks) + 1)):
                self.do_delete()
        elif way < 0.006 and self.what in ("pools", "expandable", "mixed"):
            self.do_pool()
        elif way < 0.05 and self.what in ("streams", "mixed"):
            self.do_record()
        elif way < 0.055 and self.what in ("streams", "mixed"):
            self.do_hold()
        elif rng.random() < (0.62 if self.live > self.target else 0.42):
            self.do_delete()
        else:
            self.do_alloc()
        self.forced()

    def train(self):
        """A real program instead: what it asks for is in the trace."""
        torch, rng = self.torch, self.rng
        nn, width = torch.nn, rng.choice([96, 200, 256])
        torch.cuda.set_stream(self.streams[0])
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, batch_first=True, device="cuda")
        model = nn.Sequential(nn.Embedding(5000, width, device="cuda"), nn.TransformerEncoder(layer, 3), nn.Linear(width, 5000, device="cuda"))
        optimizer = torch.optim.AdamW(model.parameters())
        self.trained = layer, model, optimizer
        while len(self.ops) < 30:
            tokens = torch.zeros(rng.randint(1, 12), rng.randint(8, 64), dtype=torch.int64, device="cuda")
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=rng.random() < 0.8)
            del loss, tokens
            self.ops.append(("?", 0, 0))
            self.do_snapshot()

    def stats(self):
        s = self.torch.cuda.memory_stats()
        names = {"retries": "num_alloc_retries", "ooms": "num_ooms", "syncs": "num_sync_all_streams",
                 "driver_allocs": "num_device_alloc", "driver_frees": "num_device_free",
                 "allocated": "allocated_bytes.all.current", "allocated_peak": "allocated_bytes.all.peak",
                 "reserved": "reserved_bytes.all.current", "reserved_peak": "reserved_bytes.all.peak",
                 "active": "active_bytes.all.current", "requested": "requested_bytes.all.current",
                 "inactive_split": "inactive_split_bytes.all.current", "segments": "segment.all.current"}
        return {name: s.get(key, 0) for name, key in names.items()}

    def run(self, events, last):
        """The lines of this program; it is the last one of this process."""
        self.last = last
        cuda = self.torch.cuda
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0, "memory is left from the case before"
        cuda.reset_peak_memory_stats()
        cuda.memory._record_memory_history(max_entries=events * 40 + 100000, context=None)
        before = self.stats()
        free, total = cuda.mem_get_info()
        self.target = int(free * self.rng.uniform(0.2, 1.2))
        self.kept = settings_kept(self.rng, self.minor, self.expandable)
        text = settings_text(self.rng, self.minor, self.expandable, self.kept)
        cuda.memory._set_allocator_settings(text)
        cuda.set_per_process_memory_fraction(1.0)
        lines = ["init 2 %d %d %d" % (self.minor, total, free), "s " + text, "l 1.0"]
        if self.what == "training":
            self.train()
        elif self.rng.random() < 0.5:
            self.do_fraction()
        while len(self.ops) < events and self.what != "training":
            self.step()
        self.do_snapshot()
        after = self.stats()
        self.ops += [("K", name, after[name] - (before[name] if not name.split("_")[0] in (
            "allocated", "reserved", "active", "requested", "inactive", "segments") else 0)) for name in after]
        if self.what != "training":     # code that is loaded takes memory, too
            self.ops.append(("G", cuda.mem_get_info()[0]))
        entries = cuda.memory._snapshot()["device_traces"][0]
        lines += self.merge(entries)
        if self.what != "training":
            self.finish()
        return lines

    def finish(self):
        self.finishing = True
        for i in sorted(self.held):
            self.let_go(i)
        while self.active:
            self.pool_end(0)
        while self.blocks:
            self.do_delete()
        while self.pools:
            self.pool_drop(sorted(self.pools)[0])
        self.torch.cuda.memory._record_memory_history(None)
        self.torch.cuda.set_per_process_memory_fraction(1.0)
        self.torch.cuda.empty_cache()

    def merge(self, entries):
        """The operations, each with what the trace says it did."""
        lines, at = [], 0

        def take(last, own=None):
            """Notes entries up to the first of these actions, and returns that one; `own`: PyTorch itself uses this pool."""
            nonlocal at
            while entries[at]["action"] not in last:
                entry = entries[at]
                letter = ACTIONS.get(entry["action"])
                if letter:
                    lines.append("%s %d %d" % (letter, entry["addr"], entry["size"]))
                elif entry["action"] == "free_completed":
                    lines.append("C %d" % entry["addr"])
                elif own and entry["action"] in ("alloc", "oom"):
                    addr = entry["addr"] if entry["action"] == "alloc" else 0
                    lines.append("a %d %d %d %d %d" % (addr, entry["size"], entry["stream"], *own))
                elif own and entry["action"] == "free_requested":
                    assert entries[at + 1]["action"] == "free_completed"
                    lines.extend(["C %d" % entry["addr"], "d %d" % entry["addr"]])
                    at += 1
                else:
                    raise AssertionError("%r before one of %s" % (entry, last))
                at += 1
            at += 1
            return entries[at - 1]

        for op in self.ops:
            if op[0] == "a":
                entry = take(("alloc", "oom"))
                assert (entry["addr"] if entry["action"] == "alloc" else 0) == op[1], (entry, op)
                lines.append("a %d %d %d %d %d" % op[1:])
            elif op[0] == "d":
                entry = take(("free_requested",))
                assert entry["addr"] == op[1], (entry, op)
                if not op[2]:
                    assert entries[at]["action"] == "free_completed", entries[at]
                    at += 1
                    lines.append("C %d" % op[1])
                lines.append("d %d" % op[1])
            elif op[0] == "?":
                take(("snapshot",), own=op[1:])
                at -= 1
            elif op[0] == "e":
                take(("snapshot",))
                at -= 1
                lines.append("e %d %d" % op[1:])
            elif op[0] == "S":
                take(("snapshot",))
                lines += snapshot_lines(op[1])
            else:
                lines.append(" ".join(str(word) for word in op))
        return lines


def snapshot_lines(segments):
    states = {"inactive": 0, "active_pending_free": 1, "active_awaiting_free": 1, "active_allocated": 2}
    for segment in sorted(segments, key=lambda s: s["address"]):
        at = segment["address"]
        for block in segment["blocks"]:
            yield "P %d %d %d %d %d %d %d %d %d %d %d" % (
                segment["address"], segment["total_size"], at, block["size"], block["requested_size"], segment["stream"],
                *segment["segment_pool_id"], states[block["state"]], segment["segment_type"] == "small", segment["is_expandable"])
            at += block["size"]
    yield "S"


def program(args):
    """Runs on the simulated GPU: writes one file for each case."""
    holder = Holder(4)
    import torch
    torch.cuda.init()
    streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(3)]
    torch.empty(1, dtype=torch.uint8, device="cuda").record_stream(streams[1])
    warm = torch.cuda.CUDAGraph()    # code that is loaded for the first graph takes memory
    torch.cuda.set_stream(streams[1])
    warm.capture_begin(capture_error_mode="relaxed")
    warm.capture_end()
    warm.reset()
    del warm
    Case.page = random.Random(args.seed).choice([20, 20, 24, 64])
    first, n = args.case or 0, (args.events + PER_CASE - 1) // PER_CASE
    for i in range(first, first + 1 if args.case is not None else n):
        rng = random.Random("%d-%d" % (args.seed, i))
        what = args.only or rng.choice(["plain", "streams", "pools", "expandable", "mixed"])
        if not args.only and i == n - 1 and n > 1:
            what = "training"    # last, because libraries keep what they allocate
        case = Case(torch, "%d-%d" % (args.seed, i), what, holder, streams)
        lines = case.run(min(PER_CASE, args.events), i == n - 1)
        path = os.path.join(args.program, "%d-%s" % (i, what))
        with open(path + ".part", "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        os.rename(path + ".part", path)
    os._exit(0)


# ---- outside --------------------------------------------------------------------------------------------

def run_program(args, torch, folder, case):
    """Fills the folder with the lines of this case, or of all. What went wrong, or None."""
    memory = "%dM" % random.Random(args.seed).choice([256, 512, 1024])
    command = [os.path.join(args.build, "cuwhy"), "run", "--gpu", "sim:tiny,memory=" + memory, sys.executable, os.path.abspath(__file__),
               "--program", folder, "--seed", str(args.seed), "--events", str(args.events)]
    command += ["--case", str(case)] if case is not None else []
    command += ["--only", args.only] if args.only else []
    done = subprocess.run(command, env=dict(os.environ, PYTHONPATH=torch, PYTHONWARNINGS="ignore"), capture_output=True, text=True)
    return None if done.returncode == 0 else "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])


def play(args, path):
    with open(path, "rb") as f:
        return subprocess.run([os.path.join(args.build, "tests", "allocator_replay")], stdin=f, capture_output=True, text=True)


def disturbed(args, torch, name):
    """Streams are held by another process, and on a busy machine not always when they should be: is the case equal when repeated?"""
    if name.split("-")[1] not in ("streams", "mixed"):
        return False
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            if not run_program(args, torch, folder, int(name.split("-")[0])):
                if all(play(args, os.path.join(folder, again)).returncode == 0 for again in os.listdir(folder)):
                    return True
    return False


def check(args, torch):
    """True if all cases are equal with this PyTorch."""
    began, counts, repeated = time.monotonic(), [0, 0, 0, 0, 0], 0
    with tempfile.TemporaryDirectory() as folder:
        why = run_program(args, torch, folder, args.case)
        if why:
            print("%s: the program failed:\n%s" % (torch, why))
        cases = sorted(os.listdir(folder), key=lambda name: int(name.split("-")[0]))
        good = not why and bool(cases)
        for name in cases:
            played = play(args, os.path.join(folder, name))
            if played.returncode and disturbed(args, torch, name):
                repeated += 1
                continue
            if played.returncode:
                good = False
                print("%s: case %s differs: --seed %d --case %s --events %d" % (torch, name, args.seed, name.split("-")[0], args.events))
                print("\n".join(played.stdout.splitlines()[:args.lines]))
                if args.keep:
                    shutil.move(os.path.join(folder, name), args.keep)
                break
            numbers = [int(word.strip("(")) for word in played.stdout.split() if word.strip("(").isdigit()]
            counts = [a + b for a, b in zip(counts, numbers)]
    print("%s: %d cases (%d repeated), %d allocations, %d deletions, %d driver calls (%d in another order), %d snapshots: %s, %.0f s" % (
        torch, len(cases), repeated, *counts, "equal" if good else "DIFFERENT", time.monotonic() - began), flush=True)
    return good


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", nargs="*", help="folders with unpacked wheels of PyTorch")
    parser.add_argument("--events", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--only", choices=["plain", "streams", "pools", "expandable", "mixed", "training"])
    parser.add_argument("--lines", type=int, default=40, help="of the first difference")
    parser.add_argument("--keep", help="keep the lines of the case that differs in this file")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = arguments()
    if args.program:
        return program(args)
    folders = args.torch
    if not folders:
        sys.path.insert(0, HERE)
        import check as wheel
        folder, why = wheel.install("2.11.0")
        if not folder:
            print("allocator: SKIPPED: PyTorch cannot be installed: %s" % why)
            return 0
        folders = [folder]
    return 0 if all([check(args, folder) for folder in folders]) else 1


if __name__ == "__main__":
    sys.exit(main())
