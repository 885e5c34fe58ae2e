#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the interpreter of GPU code (src/find/fault/sass_run.c) against values that are known: random kernels of our own.

Each kernel is written in PTX together with the values that it must compute, assembled with ptxas for each architecture, and one
thread of it is executed (run_cubin.c). A stored value that is unknown is counted; one that is wrong fails the check.

The tools are found as check_sass.py describes. --seed and --kernels choose what is tried.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile

from check_sass import HERE, ROOT, tool

ARCHS = [75, 80, 86, 89, 90, 100]
PARAMS_AT = {75: 0x160, 80: 0x160, 86: 0x160, 89: 0x160, 90: 0x210, 100: 0x380}
M32, M64 = 0xffffffff, 0xffffffffffffffff
OUT, IN = 0x7f1234560000, 0x7f1298760000
WORDS = 64


def s32(v):
    return (v & M32) - (1 << 32) if v & 0x80000000 else v & M32


def s64(v):
    return (v & M64) - (1 << 64) if v >> 63 & 1 else v & M64


def as_f32(v):
    return struct.unpack("<f", struct.pack("<I", v))[0]


def as_f64(v):
    return struct.unpack("<d", struct.pack("<Q", v))[0]


def half(v):
    return struct.unpack("<e", struct.pack("<H", v))[0]


def cut(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


COMPARE = {"lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
           "eq": lambda a, b: a == b, "ne": lambda a, b: a != b}


class Kernel:
    """A random straight or branching program, and what it computes."""

    def __init__(self, rnd):
        self.r, self.text, self.stores = rnd, [], []
        self.v32, self.v64, self.preds, self.n = [], [], [], 0
        self.tid, self.ctaid, self.ntid, self.nctaid = rnd.randrange(256), rnd.randrange(64), 256, 64
        self.memory = [rnd.choice((rnd.getrandbits(32), rnd.randrange(16), M32 - rnd.randrange(16), 0x7fc00000, 0x3f800000))
                       for _ in range(WORDS)]
        self.params = [rnd.getrandbits(32), rnd.randrange(1, 1000), rnd.getrandbits(64), rnd.randrange(1, 1 << 40)]

    def new(self, kind):
        self.n += 1
        return f"%{kind}{self.n}"

    def emit(self, line):
        self.text.append(line)

    def put32(self, op, value):
        name = self.new("r")
        self.emit(op.replace("$", name))
        self.v32.append((name, value & M32))

    def put64(self, op, value):
        name = self.new("d")
        self.emit(op.replace("$", name))
        self.v64.append((name, value & M64))

    def begin(self):
        self.emit("ld.param.u64 %out,[out]; ld.param.u64 %in,[in]; cvta.to.global.u64 %out,%out; cvta.to.global.u64 %in,%in;")
        for i, (v, wide) in enumerate(zip(self.params, (0, 0, 1, 1))):
            (self.put64 if wide else self.put32)(f"ld.param.{'u64' if wide else 'u32'} $,[p{i}];", v)
        self.put32("mov.u32 $,%tid.x;", self.tid)
        self.put32("mov.u32 $,%ctaid.x;", self.ctaid)
        self.put32("mov.u32 $,%ntid.x;", self.ntid)
        self.put32("mov.u32 $,%nctaid.x;", self.nctaid)
        for _ in range(4):
            self.load()

    def load(self):
        i = self.r.randrange(WORDS - 1) & ~1
        kind = self.r.choice(("u32", "u64", "u8", "s8", "u16", "s16", "v2", "index"))
        w = self.memory[i]
        if kind == "u32":
            self.put32(f"ld.global.u32 $,[%in+{4 * i}];", w)
        elif kind == "u64":
            self.put64(f"ld.global.u64 $,[%in+{4 * i}];", w | self.memory[i + 1] << 32)
        elif kind == "v2":
            a, b = self.new("r"), self.new("r")
            self.emit(f"ld.global.v2.u32 {{{a},{b}}},[%in+{4 * i}];")
            self.v32 += [(a, w), (b, self.memory[i + 1])]
        elif kind == "index":
            n, v = self.r.choice(self.v32)
            a, d = self.new("r"), self.new("d")
            self.emit(f"and.b32 {a},{n},{WORDS - 1}; mul.wide.u32 {d},{a},4; add.s64 {d},{d},%in;")
            self.put32(f"ld.global.u32 $,[{d}];", self.memory[v & WORDS - 1])
        else:
            bits = int(kind[1:])
            v = w & (1 << bits) - 1
            if kind[0] == "s" and v >> bits - 1:
                v -= 1 << bits
            self.put32(f"ld.global.{kind} $,[%in+{4 * i}];", v)

    def pick32(self):
        return self.r.choice(self.v32[-12:]) if self.r.random() < 0.8 else (lambda v: (str(v), v & M32))(
            self.r.choice((0, 1, -1, 7, 255, 0xffff, 65536, self.r.getrandbits(31))))

    def pick64(self):
        return self.r.choice(self.v64[-10:])

    def op32(self):
        (a, x), (b, y), (c, z) = self.r.choice(self.v32[-12:]), self.pick32(), self.pick32()
        sh = self.r.randrange(32)
        sel = self.r.getrandbits(16)
        pool = lambda: x | y << 32

        def prmt():
            out = 0
            for i in range(4):
                k = sel >> 4 * i & 15
                byte = pool() >> 8 * (k & 7) & 255
                out |= (255 if k & 8 and byte >> 7 else 0 if k & 8 else byte) << 8 * i
            return out

        t = self.r.getrandbits(8)

        def lut():
            out = 0
            for i in range(32):
                k = (x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1
                out |= (t >> k & 1) << i
            return out

        table = [
            (f"add.s32 $,{a},{b};", x + y), (f"sub.s32 $,{a},{b};", x - y), (f"mul.lo.s32 $,{a},{b};", x * y),
            (f"mad.lo.s32 $,{a},{b},{c};", x * y + z), (f"mul.hi.u32 $,{a},{b};", x * y >> 32),
            (f"mul.hi.s32 $,{a},{b};", s32(x) * s32(y) >> 32), (f"and.b32 $,{a},{b};", x & y), (f"or.b32 $,{a},{b};", x | y),
            (f"xor.b32 $,{a},{b};", x ^ y), (f"not.b32 $,{a};", ~x), (f"shl.b32 $,{a},{sh};", x << sh),
            (f"shr.u32 $,{a},{sh};", x >> sh), (f"shr.s32 $,{a},{sh};", s32(x) >> sh), (f"min.s32 $,{a},{b};", min(s32(x), s32(y))),
            (f"max.u32 $,{a},{b};", max(x, y)), (f"max.s32 $,{a},{b};", max(s32(x), s32(y))), (f"min.u32 $,{a},{b};", min(x, y)),
            (f"abs.s32 $,{a};", abs(s32(x))), (f"neg.s32 $,{a};", -x), (f"prmt.b32 $,{a},{b},{sel};", prmt()),
            (f"lop3.b32 $,{a},{b},{c},{t};", lut()),
        ]
        if y:
            table += [(f"div.u32 $,{a},{b};", x // y), (f"rem.u32 $,{a},{b};", x % y)]
            if not (s32(x) == -1 << 31 and s32(y) == -1):
                q = cut(s32(x), s32(y))
                table += [(f"div.s32 $,{a},{b};", q), (f"rem.s32 $,{a},{b};", s32(x) - q * s32(y))]
        self.put32(*self.r.choice(table))

    def op64(self):
        (a, x), (b, y), (n, v) = self.pick64(), self.pick64(), self.r.choice(self.v32[-12:])
        sh = self.r.randrange(64)
        table = [
            (f"add.s64 $,{a},{b};", x + y), (f"sub.s64 $,{a},{b};", x - y), (f"mul.lo.s64 $,{a},{b};", x * y),
            (f"shl.b64 $,{a},{sh};", x << sh), (f"shr.u64 $,{a},{sh};", x >> sh), (f"shr.s64 $,{a},{sh};", s64(x) >> sh),
            (f"and.b64 $,{a},{b};", x & y), (f"cvt.u64.u32 $,{n};", v), (f"cvt.s64.s32 $,{n};", s32(v)),
            (f"mul.wide.s32 $,{n},{n};", s32(v) * s32(v)), (f"mul.wide.u32 $,{n},12345;", v * 12345),
            (f"mad.wide.s32 $,{n},8,{a};", s32(v) * 8 + x), (f"min.s64 $,{a},{b};", min(s64(x), s64(y))),
            (f"neg.s64 $,{a};", -x),
        ]
        if y and self.r.random() < 0.3:
            table = [(f"div.u64 $,{a},{b};", x // y), (f"rem.u64 $,{a},{b};", x % y)]
            if s64(x) != -1 << 63:
                q = cut(s64(x), s64(y))
                table += [(f"div.s64 $,{a},{b};", q), (f"rem.s64 $,{a},{b};", s64(x) - q * s64(y))]
        self.put64(*self.r.choice(table))

    def narrow(self):
        a, x = self.pick64()
        self.put32(*self.r.choice([(f"cvt.u32.u64 $,{a};", x), (f"{{.reg .b32 %t; mov.b64 {{%t,$}},{a};}}", x >> 32)]))

    def compare(self):
        p, how = self.new("p"), self.r.choice(list(COMPARE))
        kind = self.r.choice(("u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16"))
        if kind.endswith("64"):
            (a, x), (b, y) = self.pick64(), self.pick64()
        else:
            (a, x), (b, y) = self.r.choice(self.v32[-12:]), self.r.choice(self.v32[-12:])
        view = {"u32": int, "u64": int, "s32": s32, "s64": s64, "f32": as_f32, "f64": as_f64,
                "f16": lambda v: half(v & 0xffff), "bf16": lambda v: as_f32((v & 0xffff) << 16)}[kind]
        u = ""
        if kind == "f16":
            f, g, h, i = self.new("f"), self.new("f"), self.new("h"), self.new("h")
            self.emit(f"cvt.u16.u32 {h},{a}; cvt.u16.u32 {i},{b}; cvt.f32.f16 {f},{h}; cvt.f32.f16 {g},{i};")
            a, b, kind = f, g, "f32"
        elif kind == "bf16":
            f, g = self.new("r"), self.new("r")
            self.emit(f"shl.b32 {f},{a},16; shl.b32 {g},{b},16;")
            a, b, kind = f, g, "f32"
        if kind[0] == "f" and self.r.random() < 0.5:
            u = "u"
        nan = kind[0] == "f" and (view(x) != view(x) or view(y) != view(y))
        value = (u == "u") if nan else COMPARE[how](view(x), view(y))
        if kind == "f32" and a.startswith("%r"):
            f, g = self.new("f"), self.new("f")
            self.emit(f"mov.b32 {f},{a}; mov.b32 {g},{b};")
            a, b = f, g
        elif kind == "f64":
            f, g = self.new("g"), self.new("g")
            self.emit(f"mov.b64 {f},{a}; mov.b64 {g},{b};")
            a, b = f, g
        if self.preds and self.r.random() < 0.4:
            q, v = self.r.choice(self.preds[-5:])
            op = self.r.choice(("and", "or", "xor"))
            value = {"and": value and v, "or": value or v, "xor": value != v}[op]
            self.emit(f"setp.{how}{u}.{op}.{kind} {p},{a},{b},{q};")
        else:
            self.emit(f"setp.{how}{u}.{kind} {p},{a},{b};")
        self.preds.append((p, value))

    def logic(self):
        if not self.preds:
            return self.compare()
        (p, x), (q, y), n = self.r.choice(self.preds[-6:]), self.r.choice(self.preds[-6:]), self.new("p")
        op, v = self.r.choice((("and", x and y), ("or", x or y), ("xor", x != y)))
        self.emit(f"{op}.pred {n},{p},{q};")
        self.preds.append((n, v))

    def select(self):
        if not self.preds:
            return self.compare()
        (p, v), (a, x), (b, y) = self.r.choice(self.preds[-6:]), self.r.choice(self.v32[-12:]), self.pick32()
        self.put32(f"selp.b32 $,{a},{b},{p};", x if v else y)

    def branch(self):
        """An if with other work on both sides; the loads keep ptxas from making selections of it."""
        if not self.preds:
            return self.compare()
        (p, v), (a, x) = self.r.choice(self.preds[-6:]), self.r.choice(self.v32[-12:])
        i, j, out = self.r.randrange(WORDS), self.r.randrange(WORDS), self.new("r")
        label = self.n
        t = self.new("r")
        self.emit(f"@{p} bra L{label}; ld.volatile.global.u32 {t},[%in+{4 * i}]; add.s32 {out},{t},{a}; bra M{label}; "
                  f"L{label}: ld.volatile.global.u32 {t},[%in+{4 * j}]; xor.b32 {out},{t},{a}; M{label}:")
        self.v32.append((out, (self.memory[j] ^ x if v else self.memory[i] + x) & M32))

    def loop(self):
        count, (a, x), k, acc = self.r.randrange(1, 6), self.r.choice(self.v32[-12:]), self.new("r"), self.new("r")
        label, p = self.n, self.new("p")
        bound = self.params[1] % 5 + count
        b = self.new("r")
        self.emit(f"rem.u32 {b},{self.v32[1][0]},5; add.u32 {b},{b},{count}; mov.u32 {k},0; mov.u32 {acc},{a}; "
                  f"N{label}: mad.lo.u32 {acc},{acc},3,{k}; add.u32 {k},{k},1; setp.lt.u32 {p},{k},{b}; @{p} bra N{label};")
        for i in range(bound):
            x = x * 3 + i & M32
        self.v32.append((acc, x))

    def store(self):
        at = 8 * len(self.stores)
        if self.r.random() < 0.3:
            n, v = self.r.choice(self.v64)
            self.emit(f"st.global.u64 [%out+{at}],{n};")
            self.stores += [(at, v & M32), (at + 4, v >> 32)]
            self.stores_pad()
        else:
            n, v = self.r.choice(self.v32)
            self.emit(f"st.global.u32 [%out+{at}],{n};")
            self.stores.append((at, v))

    def stores_pad(self):
        pass

    def build(self):
        self.begin()
        ops = [self.op32] * 6 + [self.op64] * 5 + [self.compare] * 4 + [self.logic] * 2 + [self.select] * 3 + \
              [self.branch] * 2 + [self.loop, self.narrow, self.narrow, self.load, self.load]
        for _ in range(self.r.randrange(10, 60)):
            self.r.choice(ops)()
        offsets = 0
        for kind, pool in (("32", self.v32[-14:]), ("64", self.v64[-8:])):
            for n, v in pool:
                if kind == "32":
                    self.emit(f"st.global.u32 [%out+{offsets}],{n};")
                    self.stores.append((offsets, v))
                else:
                    self.emit(f"st.global.u64 [%out+{offsets}],{n};")
                    self.stores += [(offsets, v & M32), (offsets + 4, v >> 32)]
                offsets += 8
        for p, v in self.preds[-6:]:
            r = self.new("r")
            self.emit(f"selp.b32 {r},1,0,{p}; st.global.u32 [%out+{offsets}],{r};")
            self.stores.append((offsets, int(v)))
            offsets += 8
        self.emit("ret;")
        n = self.n + 1
        return (f".visible .entry k(.param .u64 out,.param .u64 in,.param .u32 p0,.param .u32 p1,.param .u64 p2,.param .u64 p3)\n"
                f"{{ .reg .b32 %r<{n}>; .reg .b64 %d<{n}>; .reg .b64 %out; .reg .b64 %in; .reg .pred %p<{n}>; .reg .f32 %f<{n}>; "
                f".reg .f64 %g<{n}>; .reg .b16 %h<{n}>;\n" + "\n".join(self.text) + "\n}\n")

    def param_bytes(self):
        return struct.pack("<QQIIQQ", OUT, IN, *self.params)


# ---- kernels that check a value ---------------------------------------------------------------------------------

BASE = 0x7f1298760000
CHECKS = {
    # name: (bytes of an element, how it is loaded and compared; %p1 holds when the check fails)
    "s64": (8, "ld.global.u64 %d4,[%d3]; setp.lt.s64 %p2,%d4,0; setp.ge.s64 %p3,%d4,%d6; or.pred %p1,%p2,%p3;"),
    "s64_ignored": (8, "ld.global.u64 %d4,[%d3]; setp.eq.s64 %p2,%d4,-100; @%p2 bra OK; setp.ge.u64 %p1,%d4,%d6;"),
    "s64_from_end": (8, "ld.global.u64 %d4,[%d3]; setp.lt.s64 %p2,%d4,0; selp.b64 %d7,%d6,0,%p2; add.s64 %d7,%d7,%d4; "
                        "setp.ge.u64 %p1,%d7,%d6;"),
    "s32": (4, "ld.global.u32 %r4,[%d3]; setp.ge.u32 %p1,%r4,%r6;"),
    "u8": (1, "ld.global.u8 %r4,[%d3]; setp.ge.u32 %p1,%r4,%r6;"),
    "f32": (4, "ld.global.f32 %f1,[%d3]; setp.ge.f32 %p2,%f1,0f00000000; setp.le.f32 %p3,%f1,0f3F800000; and.pred %p2,%p2,%p3; "
               "not.pred %p1,%p2;"),
    "f64": (8, "ld.global.f64 %g1,[%d3]; setp.ge.f64 %p2,%g1,0d0000000000000000; setp.le.f64 %p3,%g1,0d3FF0000000000000; "
               "and.pred %p2,%p2,%p3; not.pred %p1,%p2;"),
    "f16": (2, "ld.global.u16 %h1,[%d3]; cvt.f32.f16 %f1,%h1; setp.ge.f32 %p2,%f1,0f00000000; setp.le.f32 %p3,%f1,0f3F800000; "
               "and.pred %p2,%p2,%p3; not.pred %p1,%p2;"),
    "bf16": (2, "ld.global.u16 %r4,[%d3]; shl.b32 %r5,%r4,16; mov.b32 %f1,%r5; setp.ge.f32 %p2,%f1,0f00000000; "
                "setp.le.f32 %p3,%f1,0f3F800000; and.pred %p2,%p2,%p3; not.pred %p1,%p2;"),
}
BAD = {"s64": (10, -1, 1 << 40), "s64_ignored": (10, -1, 1 << 33), "s64_from_end": (10, -11, 1 << 50), "s32": (10, -5, 77), "u8": (10, 255),
       "f32": (0x3fc00000, 0xbf000000, 0x7fc00000), "f64": (0x3ff8000000000000, 0xbfe0000000000000, 0x7ff8000000000000),
       "f16": (0x3e00, 0xb800, 0x7e00), "bf16": (0x3fc0, 0xbf00, 0x7fc0)}


class Check:
    """A kernel that checks element stride * i of a tensor, i = its number; with `loop`, further elements, ntid apart."""

    def __init__(self, rnd, kind=None, loop=None):
        self.kind = kind or rnd.choice(list(CHECKS))
        self.size = CHECKS[self.kind][0]
        self.loop = rnd.random() < 0.5 if loop is None else loop
        self.stride = rnd.choice((1, 1, 3))
        self.tid, self.ctaid, self.ntid, self.nctaid = rnd.randrange(32), 0 if self.loop else rnd.randrange(3), 32, 1 if self.loop else 3
        self.count = 96
        self.place = self.tid + 32 * rnd.randrange(3) if self.loop else self.ctaid * 32 + self.tid
        self.value = rnd.choice(BAD[self.kind]) & (1 << 8 * self.size) - 1
        good = {"f32": 0x3f000000, "f64": 0x3fe0000000000000, "f16": 0x3800, "bf16": 0x3f00}.get(self.kind, 5)
        values = [good] * (self.count * self.stride)
        values[self.place * self.stride] = self.value
        self.bytes = b"".join(v.to_bytes(self.size, "little") for v in values)
        self.at = BASE + self.place * self.stride * self.size

    def ptx(self):
        advance = "add.s32 %r1,%r1,%r3; setp.lt.s32 %p2,%r1,%r8; @%p2 bra AGAIN;" if self.loop else ""
        return (".visible .entry k(.param .u64 out,.param .u64 in,.param .u64 bound,.param .u32 count,.param .u32 stride)\n"
                "{ .reg .b32 %r<12>; .reg .b64 %d<12>; .reg .pred %p<6>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .b16 %h<4>;\n"
                "ld.param.u64 %d1,[in]; cvta.to.global.u64 %d1,%d1; ld.param.u64 %d6,[bound]; cvt.u32.u64 %r6,%d6; ld.param.u32 %r8,[count];\n"
                "ld.param.u32 %r7,[stride]; mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mad.lo.s32 %r1,%r2,%r3,%r1;\n"
                f"AGAIN: mul.lo.s32 %r9,%r1,%r7; mul.wide.s32 %d2,%r9,{self.size}; add.s64 %d3,%d1,%d2;\n{CHECKS[self.kind][1]}\n"
                f"@%p1 bra FAIL; OK: {advance} ld.param.u64 %d8,[out]; st.global.u32 [%d8],%r1; ret; FAIL: trap; ret; }}\n")

    def param_bytes(self):
        return struct.pack("<QQqII", OUT, BASE, 10, self.count, self.stride)


ACCESS = ("ld.global.u32 %r4,[%d3]; mul.wide.s32 %d7,%r4,4; ld.param.u64 %d8,[out]; cvta.to.global.u64 %d8,%d8; add.s64 %d7,%d8,%d7; "
          "st.global.u32 [%d7],%r1; ret; }\n")


def access_ptx(check):
    """Stores to the element that a number in memory names."""
    text = check.ptx()
    return text[:text.index(CHECKS[check.kind][1])] + ACCESS


def code_of_kernel(cubin):
    data = open(cubin, "rb").read()
    head = struct.unpack_from("<16sHHIQQQIHHHHHH", data, 0)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, head[6] + 64 * i) for i in range(head[12])]
    names = sections[head[13]][4]
    for s in sections:
        if data[names + s[0]:].startswith(b".text."):
            return [struct.unpack_from("<QQ", data, s[4] + at) for at in range(0, s[5], 16)]
    return []


def assemble(ptx, arch, tmp, ptxas):
    cubin = os.path.join(tmp, "k.cubin")
    with open(os.path.join(tmp, "k.ptx"), "w") as f:
        f.write(f".version 8.7\n.target sm_{arch}\n.address_size 64\n" + ptx)
    subprocess.run([ptxas, f"-arch=sm_{arch}", os.path.join(tmp, "k.ptx"), "-o", cubin], check=True, capture_output=True)
    return code_of_kernel(cubin)


def table(path, tmp, ptxas):
    """The test data of tests/unit/test_values.c."""
    rows = ["/* SPDX-License-Identifier: Apache-2.0\n * Kernels of our own that check a value, and which one fails. Written by tests/dump/check_run.py --table.\n *\n"
            " * CHECK(arch, \"kind\", offset of the trap, tid, ctaid, nctaid, params offset, count, stride, place, bytes, value, code...)\n"
            " * ACCESS(…) the same for a store whose address is computed from the value\n */"]
    rnd = random.Random(7)
    for arch in (75, 80, 90, 100):
        for kind in CHECKS:
            for loop in (False, True, None) if kind == "s32" else (False, True):
                c = Check(rnd, kind, bool(loop))
                code = assemble(access_ptx(c) if loop is None else c.ptx(), arch, tmp, ptxas)
                trap = next(16 * i for i, (lo, _) in enumerate(code) if lo & 0xfff in ((0x386, 0x986) if loop is None else (0x95c,)))
                while len(code) > 1 and code[-1][0] & 0xfff == 0x918:
                    code.pop()
                words = ",\n\t".join(f"0x{lo:016x}, 0x{hi:016x}" for lo, hi in code)
                rows.append(f'{"ACCESS" if loop is None else "CHECK"}({arch}, "{kind}", 0x{trap:x}, {c.tid}, {c.ctaid}, {c.nctaid}, 0x{PARAMS_AT[arch]:x}, {c.count}, {c.stride}, '
                            f"{c.place}, {c.size}, 0x{c.value:x},\n\t{words})")
    with open(path, "w") as f:
        f.write("\n".join(rows) + "\n#undef CHECK\n#undef ACCESS\n")


# ---- all of them ----------------------------------------------------------------------------------------------

def runner(tmp):
    out = os.path.join(tmp, "run_cubin")
    files = ["sass_cell", "sass_decide", "sass_arith", "sass_exec", "sass", "sass_math", "sass_compute", "sass_move"]
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-D_GNU_SOURCE",
                    "-I" + os.path.join(ROOT, "src"), "-I" + ROOT, os.path.join(HERE, "run_cubin.c"),
                    *(os.path.join(ROOT, f"src/find/fault/{f}.c") for f in files),
                    *(os.path.join(ROOT, f"src/formats/{f}.c") for f in ("image", "elf_sections")),
                    os.path.join(ROOT, "src/base/mem.c"), "-lm", "-o", out], check=True)
    return out


def check(kernel, arch, program, ptx, tmp, ptxas):
    cubin = os.path.join(tmp, "k.cubin")
    with open(os.path.join(tmp, "k.ptx"), "w") as f:
        f.write(f".version 8.7\n.target sm_{arch}\n.address_size 64\n" + ptx)
    run = subprocess.run([ptxas, f"-arch=sm_{arch}", os.path.join(tmp, "k.ptx"), "-o", cubin], capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr
    args = [program, str(arch), cubin, hex(PARAMS_AT[arch]), kernel.param_bytes().hex(), hex(IN),
            struct.pack(f"<{WORDS}I", *kernel.memory).hex(), *(str(v) for v in (kernel.tid, kernel.ctaid, kernel.ntid, kernel.nctaid))]
    # it ends without freeing
    run = subprocess.run(args, capture_output=True, text=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    lines = run.stdout.splitlines()
    if run.returncode or not lines:
        return None, run.stderr
    have = {}
    for line in lines[1:]:
        at, size, value = line.split()[:3]
        have[int(at, 16) - OUT] = value
    right = unknown = 0
    for at, want in kernel.stores:
        got = have.get(at)
        if got is None or got[0] == "?":
            unknown += 1
        elif int(got, 16) == want:
            right += 1
        else:
            return None, f"[{at}] is {got}, should be {want:x}; {lines[0]}"
    return (right, unknown, lines[0]), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", type=int, default=40)
    parser.add_argument("--arch", type=int, action="append")
    parser.add_argument("--table", help="write the test data of tests/unit/test_values.c")
    parser.add_argument("--keep", help="folder for a kernel that went wrong")
    args = parser.parse_args()
    found = tool("ptxas")
    if not found:
        print("SKIP: no ptxas")
        return 0
    if args.table:
        with tempfile.TemporaryDirectory() as tmp:
            table(args.table, tmp, found[0])
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        program = runner(tmp)
        for arch in args.arch or ARCHS:
            total, lost, ended = 0, 0, 0
            for seed in range(args.seed, args.seed + args.kernels):
                kernel = Kernel(random.Random(seed))
                ptx = kernel.build()
                result, why = check(kernel, arch, program, ptx, tmp, found[0])
                if result is None:
                    bad += 1
                    print(f"sm_{arch} seed {seed}: {why[:600]}")
                    if args.keep:
                        subprocess.run(["cp", os.path.join(tmp, "k.cubin"), os.path.join(tmp, "k.ptx"), args.keep])
                    if bad > 5:
                        return 1
                    continue
                total += result[0]
                lost += result[1]
                ended += not result[2].startswith("end 1")
            print(f"sm_{arch}: {total} values right, {lost} unknown, {ended} of {args.kernels} kernels not followed to the end")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
