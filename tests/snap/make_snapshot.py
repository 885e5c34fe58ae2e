#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes memory snapshots in the shape of every release of PyTorch, of programs that are made up here.

    make_snapshot.py OUT [--shape 2.11] [--protocol 4] [--story train] [--events N] [--gzip]

The shapes are 1.13 (a list), 2.0 (blocks with a history), 2.1, 2.3, 2.5, 2.7, 2.9, 2.11, 2.12; protocol 0 means the
writer of PyTorch's C++ side: protocol 2, one APPENDS for a list of any length. Lists of frames are shared between an
allocation and its free, and the dictionaries of frames between all stacks, as PyTorch does it.
"""
import argparse
import gzip
import pickle
import random
import struct

MIB = 1 << 20
GIB = 1 << 30
TORCH = "/usr/lib/python3/site-packages/torch/nn/modules/"


class Code:
    """One frame object per line."""

    def __init__(self):
        self.frames = {}

    def stack(self, *lines):
        return [self.frames.setdefault(x, {"name": x[0], "filename": x[1], "line": x[2]}) for x in lines]


class Allocator:
    """Segments, blocks that are reused when their size fits, and a card that can run out of memory."""

    def __init__(self, total, shape, expandable=False):
        self.total, self.shape, self.expandable = total, shape, expandable
        self.events, self.segments, self.free_blocks = [], [], {}
        self.reserved = 0
        self.outside = 0
        self.time = 1_700_000_000_000_000
        self.next = 0x7F2000000000

    def event(self, action, addr, size, stream, frames, free=None):
        self.time += 7
        e = {"action": action}
        if free is None:
            e["addr"] = addr
        else:
            e["device_free"] = free
        e["size"] = size
        e["stream"] = stream
        if self.shape >= (2, 3):
            e["time_us"] = self.time
        if self.shape >= (2, 7):
            e["compile_context"] = "N/A"
        if self.shape >= (2, 9):
            e["user_metadata"] = ""
        if self.shape >= (2, 12):
            e["pool_id"] = (0, 0)
        if frames is not None:
            e["frames"] = frames
        self.events.append(e)

    def alloc(self, size, frames, stream=0):
        """The block; None when the card is full, which is an event as well."""
        rounded = max(512, (size + 511) & ~511)
        block = None
        if self.free_blocks.get((rounded, stream)):
            block = self.free_blocks[rounded, stream].pop()
        else:
            block = self.carve(rounded, frames, stream)
        if block is None:
            self.event("oom", None, rounded, stream, frames, self.total - self.outside - self.reserved)
            return None
        block.update(requested_size=size, state="active_allocated", frames=frames)
        self.event("alloc", block["address"], size, stream, frames)
        return block

    @staticmethod
    def asked(rounded):
        return 2 * MIB if rounded <= MIB else 20 * MIB if rounded < 10 * MIB else (rounded + 2 * MIB - 1) // (2 * MIB) * 2 * MIB

    def carve(self, rounded, frames, stream):
        small = rounded <= MIB
        for s in reversed(self.segments[-8:]):
            last = s["blocks"][-1]
            if s["small"] == small and s["stream"] == stream and last["state"] == "inactive" and last["size"] >= rounded:
                return self.split(s, last, rounded)
        size = self.asked(rounded)
        if self.reserved + size > self.total - self.outside:
            return None
        s = {"address": self.next, "size": size, "stream": stream, "small": small, "frames": frames,
             "blocks": [{"address": self.next, "size": size, "state": "inactive", "requested_size": 0, "frames": []}]}
        self.next += size + 2 * MIB
        self.reserved += size
        self.segments.append(s)
        self.event("segment_map" if self.expandable else "segment_alloc", s["address"], size, stream, frames)
        return self.split(s, s["blocks"][-1], rounded)

    @staticmethod
    def split(s, last, rounded):
        if last["size"] > rounded:
            s["blocks"].append({"address": last["address"] + rounded, "size": last["size"] - rounded,
                                "state": "inactive", "requested_size": 0, "frames": []})
            last["size"] = rounded
        last["stream"] = s["stream"]
        return last

    def free(self, block):
        for action in ("free_requested", "free_completed"):
            self.event(action, block["address"], block["requested_size"], block["stream"], block["frames"])
        block.update(state="inactive")
        self.free_blocks.setdefault((block["size"], block["stream"]), []).append(block)

    # --- the shapes ----------------------------------------------------------------------------

    def block(self, b):
        d = {"size": b["size"], "state": b["state"]}
        live = b["state"] != "inactive"
        if self.shape >= (2, 1):
            d.update(address=b["address"], requested_size=b["requested_size"], frames=b["frames"] if live else [])
        elif self.shape >= (2, 0):
            d["history"] = [{"addr": b["address"], "real_size": b["requested_size"], "frames": b["frames"]}] if live else []
        return d

    def segment(self, s, device):
        live = [b for b in s["blocks"] if b["state"] == "active_allocated"]
        d = {"device": device, "address": s["address"], "total_size": s["size"],
             "allocated_size": sum(b["size"] for b in live), "active_size": sum(b["size"] for b in live),
             "segment_type": "small" if s["small"] else "large"}
        if self.shape >= (2, 0):
            d["stream"] = s["stream"]
        if self.shape >= (2, 1):
            d.update(requested_size=sum(b["requested_size"] for b in live), segment_pool_id=(0, 0),
                     is_expandable=self.expandable, frames=s["frames"])
        d["blocks"] = [self.block(b) for b in s["blocks"]]
        return d

    def snapshot(self, device=0):
        segments = [self.segment(s, device) for s in self.segments]
        if self.shape < (2, 0):
            return segments
        self.event("snapshot", 0, sum(s["allocated_size"] for s in segments), 0, None)
        top = {"segments": segments, "device_traces": [[] for _ in range(device)] + [self.events]}
        if self.shape >= (2, 3):
            top["allocator_settings"] = {
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if self.expandable else "", "max_split_size": -1,
                "garbage_collection_threshold": 0.0, "expandable_segments": self.expandable,
                "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
                "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}
        if self.shape >= (2, 5):
            top["external_annotations"] = [{"name": "step", "stage": "START", "device": device, "time_us": self.time}]
        if self.shape >= (2, 12):
            top["host_segments"] = []
            top["host_traces"] = []
        return top


# --- stories ---------------------------------------------------------------------------------------

def forward_stack(code, layer, depth=18):
    """A linear layer of a model, called through PyTorch's modules."""
    lines = [("forward", TORCH + "linear.py", 125), ("_call_impl", TORCH + "module.py", 1784),
             ("_wrapped_call_impl", TORCH + "module.py", 1773), ("forward", "/home/user/model.py", 20 + layer % 12)]
    for i in range(depth - 6):
        lines.append(("_call_impl" if i % 2 else "forward", TORCH + ("module.py" if i % 2 else "container.py"), 200 + i))
    return code.stack(*lines, ("step", "/home/user/train.py", 61), ("<module>", "/home/user/train.py", 88))


def train(a, events, leak=0):
    """Weights, then steps of forward and backward; `leak` bytes stay in every step."""
    code, rng = Code(), random.Random(1)
    kept = [a.alloc(rng.randrange(4, 64) * MIB, code.stack(("to", TORCH + "module.py", 1170),
                                                           ("build", "/home/user/model.py", 9))) for _ in range(24)]
    while len(a.events) < events:
        live = []
        for layer in range(48):
            size = (layer % 6 + 1) * 700_000 + 4096 * (layer % 5)
            b = a.alloc(size, forward_stack(code, layer))
            if b is None:
                return
            live.append(b)
            if layer % 3 == 0:
                t = a.alloc(40_000 + layer * 512, forward_stack(code, layer + 3))
                if t:
                    a.free(t)
        if leak:
            b = a.alloc(leak, code.stack(("append", "/home/user/train.py", 70), ("<module>", "/home/user/train.py", 88)))
            if b is None:
                return
            kept.append(b)
        while live:
            a.free(live.pop())


def growth(a, events):
    """The card is full after about `events` events; each round leaks 24 MiB or less."""
    rounds = max(events // 165, 1)
    train(a, 1 << 40, leak=min(24 * MIB, (a.total - GIB) // rounds) + 100)


def pile(a, inside=(), temporary=1, line=39, rounds=36):
    """Line 40 allocates tensors that stay, and `line` as many `temporary` ones each time, until the card is full."""
    code = Code()
    stack = code.stack(*inside, ("collect", "/home/user/train.py", 40), ("<module>", "/home/user/train.py", 88))
    scratch = code.stack(("collect", "/home/user/train.py", line), ("<module>", "/home/user/train.py", 88))
    while True:
        freed = [a.alloc(a.total // rounds // 2, scratch) for _ in range(temporary)]
        b = a.alloc(a.total // rounds, stack) if None not in freed else None
        for t in freed:
            if t:
                a.free(t)
        if b is None:
            return


LAYER = (("forward", TORCH + "linear.py", 125), ("_call_impl", TORCH + "module.py", 1784))


def capacity(a, _events):
    """Activations are kept until the card is full in the first step."""
    code = Code()
    for layer in range(10_000):
        if a.alloc(100 * MIB + 512 * layer, forward_stack(code, layer)) is None:
            return


def fragmentation(a, _events):
    """Small blocks that stay keep large segments from being used."""
    code, blocks = Code(), []
    keep = code.stack(("keep", "/home/user/data.py", 33), ("<module>", "/home/user/train.py", 88))
    full = False
    while not full:
        for size, frames in ((8 * MIB, forward_stack(code, 1)), (1536 * 1024, keep), (8 * MIB, forward_stack(code, 2))):
            b = a.alloc(size, frames)
            full = full or b is None
            if b and frames is not keep:
                blocks.append(b)
    a.events[:] = [e for e in a.events if e["action"] != "oom"]
    for b in blocks:
        a.free(b)
    a.alloc(512 * MIB, code.stack(("forward", "/home/user/model.py", 50), ("<module>", "/home/user/train.py", 88)))


def too_large(a, _events):
    code = Code()
    a.alloc(64 * MIB, forward_stack(code, 0))
    a.alloc(4096 * GIB, code.stack(("outer", "/home/user/model.py", 77), ("<module>", "/home/user/train.py", 88)))


def other_process(a, _events):
    """The job held 12 GiB, freed them, and then found that others had taken the card's memory."""
    code = Code()
    frames = code.stack(("load", "/home/user/train.py", 12), ("<module>", "/home/user/train.py", 88))
    b = a.alloc(12 * GIB, frames)
    a.free(b)
    a.segments.clear()
    a.free_blocks.clear()
    a.reserved = 0
    a.event("segment_free", b["address"], 12 * GIB, 0, frames)
    a.alloc(100 * MIB, frames)
    a.outside = a.total - 300 * MIB
    a.alloc(GIB, code.stack(("again", "/home/user/train.py", 30), ("<module>", "/home/user/train.py", 88)))


STORIES = {
    "train": lambda a, n: train(a, n),
    "list": lambda a, n: pile(a), "fill": lambda a, n: pile(a, temporary=0), "layers": lambda a, n: pile(a, LAYER),
    "one-line": lambda a, n: pile(a, line=40),
    "growth": growth, "capacity": capacity, "fragmentation": fragmentation, "too-large": too_large, "other-process": other_process,
}


# --- writers ---------------------------------------------------------------------------------------

class CppPickler:
    """As PyTorch's C++ side writes: protocol 2, no batches, memos by BINPUT."""

    def __init__(self, out):
        self.out, self.memo, self.keep = out, {}, []

    def dump(self, top):
        self.out.write(b"\x80\x02")
        self.value(top)
        self.out.write(b".")

    def put(self, key):
        i = self.memo[key] = len(self.memo)
        self.out.write(b"q" + bytes([i]) if i < 256 else b"r" + struct.pack("<I", i))

    def known(self, key):
        i = self.memo.get(key)
        if i is not None:
            self.out.write(b"h" + bytes([i]) if i < 256 else b"j" + struct.pack("<I", i))
        return i is not None

    def number(self, x):
        if 0 <= x < 256:
            self.out.write(b"K" + bytes([x]))
        elif 0 <= x < 65536:
            self.out.write(b"M" + struct.pack("<H", x))
        elif -(1 << 31) <= x < 1 << 31:
            self.out.write(b"J" + struct.pack("<i", x))
        else:
            self.out.write(b"\x8a\x08" + struct.pack("<q", x))

    def value(self, x):
        if isinstance(x, bool):
            self.out.write(b"\x88" if x else b"\x89")
        elif isinstance(x, int):
            self.number(x)
        elif isinstance(x, float):
            self.out.write(b"G" + struct.pack(">d", x))
        elif isinstance(x, str):
            if not self.known(x):
                text = x.encode()
                self.out.write(b"X" + struct.pack("<I", len(text)) + text)
                self.put(x)
        elif isinstance(x, tuple):
            for y in x:
                self.value(y)
            self.out.write(b"\x86")
        elif not self.known(id(x)):
            self.container(x)

    def container(self, x):
        self.out.write(b"}" if isinstance(x, dict) else b"]")
        self.put(id(x))
        self.out.write(b"(")
        for y in x:
            self.value(y)
            if isinstance(x, dict):
                self.value(x[y])
        self.out.write(b"u" if isinstance(x, dict) else b"e")


def make(shape="2.11", story="train", events=2000, total=16 * GIB, device=0):
    a = Allocator(total, tuple(int(x) for x in shape.split(".")))
    STORIES[story](a, events)
    return a.snapshot(device)


def write(path, top, protocol=4, zipped=False):
    with (gzip.open(path, "wb") if zipped else open(path, "wb")) as f:
        if protocol == 0:
            CppPickler(f).dump(top)
        else:
            pickle.dump(top, f, protocol=protocol)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--shape", default="2.11")
    p.add_argument("--protocol", type=int, default=4)
    p.add_argument("--story", default="train", choices=sorted(STORIES))
    p.add_argument("--events", type=int, default=2000)
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--total", type=int, default=16 * GIB)
    p.add_argument("--gzip", action="store_true")
    o = p.parse_args()
    write(o.out, make(o.shape, o.story, o.events, o.total, o.device), o.protocol, o.gzip)


if __name__ == "__main__":
    main()
