#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how addresses are recomputed from code (src/find/fault/sass_line.c), on our own kernels.

Kernels in PTX compute an address in many ways, chosen at random with a fixed seed: 32 and 64 bits, signed and
unsigned, shifts, rows and columns, branches, loops. The expected address is computed here beside the PTX. They are
assembled for each architecture and optimization level, and at every access the address is worked out from the code,
the parameters and the thread's position alone. An answer may be unknown; it must never be wrong.
Single instructions, also with a bit flipped, are compared with nvdisasm's text as check_sass.py does.

The tools are found as check_sass.py describes. --table FILE writes the test data of tests/unit/test_eval.c.
"""
import argparse
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import check_assert
from check_assert import Image
from check_sass import ARCHS, HERE, ROOT, code_of, disassemble, known_arch, one_bit_off, tool

KERNELS = 240
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
PARAMS = ("p", "q", "m0", "m1", "m2", "n0", "n1", "n2")
SPECIAL = ("tid.x", "ctaid.x", "tid.y", "ntid.x", "ctaid.y", "nctaid.x")


def s32(v):
    v &= M32
    return v - (1 << 32) if v >> 31 else v


def s64(v):
    v &= M64
    return v - (1 << 64) if v >> 63 else v


# ---- kernels ----------------------------------------------------------------------------------------------

class Kernel:
    """PTX text and the value of each register for one thread."""

    def __init__(self, seed):
        self.chance, self.text, self.n = random.Random(seed), [], 0
        r = self.chance
        self.env = {name: r.randrange(1, 1 << 10) for name in SPECIAL}
        for i in range(3):
            self.env[f"n{i}"] = r.choice([r.getrandbits(32), r.randrange(1000), -r.randrange(1000) & M32])
            self.env[f"m{i}"] = r.choice([r.getrandbits(64), r.getrandbits(40), r.randrange(1000), -r.randrange(1000) & M64])
        self.env["p"], self.env["q"] = 0x7f0000000000 + r.getrandbits(36) * 16, 0x7e0000000000
        self.narrow = [self.new("r", f"mov.u32 {{}},%{name};", self.env[name]) for name in SPECIAL]
        self.narrow += [self.new("r", f"ld.param.u32 {{}},[n{i}];", self.env[f"n{i}"]) for i in range(3)]
        self.wide = [self.new("d", f"ld.param.u64 {{}},[m{i}];", self.env[f"m{i}"]) for i in range(3)]
        for _ in range(r.randrange(2, 14)):
            self.step()
        self.access()

    def new(self, file, text, value):
        self.n += 1
        name = f"%{file}{self.n}"
        self.text.append(text.format(name))
        return name, value & (M32 if file == "r" else M64)

    def step(self):
        r = self.chance
        x, y, z = r.choice(self.narrow[-8:] + self.narrow[:2]), r.choice(self.narrow[-8:] + self.narrow), r.choice(self.narrow)
        u, v = r.choice(self.wide[-5:]), r.choice(self.wide[-5:])
        if r.random() < .3:
            y = r.choice([1, 2, 3, 4, 8, 12, 17, 100, 4096, 65536, M32, M32 - 7, 0x7fffffff])
            y = str(s32(y)), y
        if r.random() < .2:
            v = r.choice([1, 3, 8, 24, 1 << 20, M64 - 15, 1 << 33, 0x123456789])
            v = str(s64(v)), v
        kind = r.choice((self.narrow_step, self.narrow_step, self.shift_step, self.extend_step, self.wide_step,
                         self.wide_step, self.branch_step))
        kind(x, y, z, u, v)

    def narrow_step(self, x, y, z, u, v):
        (a, i), (b, j), (c, k) = x, y, z
        self.narrow.append(self.new("r", *self.chance.choice([
            (f"add.s32 {{}},{a},{b};", i + j), (f"sub.s32 {{}},{a},{b};", i - j), (f"mul.lo.s32 {{}},{a},{b};", i * j),
            (f"mad.lo.s32 {{}},{a},{b},{c};", i * j + k), (f"and.b32 {{}},{a},{b};", i & j),
            (f"or.b32 {{}},{a},{b};", i | j), (f"xor.b32 {{}},{a},{b};", i ^ j),
            (f"cvt.u32.u64 {{}},{u[0]};", u[1]), (f"bfe.u32 {{}},{a},4,7;", i >> 4 & 127),
            (f"min.s32 {{}},{a},{b};", min(s32(i), s32(j))), (f"mul.hi.u32 {{}},{a},{b};" if b[0] == "%" else
                                                            f"add.s32 {{}},{a},{b};", i * j >> 32 if b[0] == "%" else i + j)])))

    def shift_step(self, x, y, z, u, v):
        r, (a, i), (d, w) = self.chance, x, u
        by, far = r.randrange(32), r.choice([1, 2, 3, 4, 5, 20, 31, 32, 33, 40, 63])
        if r.random() < .3:
            c, k = z[0], z[1]
            k32, k64 = min(k, 32), min(k, 64)
            self.narrow.append(self.new("r", *r.choice([(f"shl.b32 {{}},{a},{c};", i << k32), (f"shr.u32 {{}},{a},{c};", i >> k32),
                                                        (f"shr.s32 {{}},{a},{c};", s32(i) >> k32)])))
            self.wide.append(self.new("d", *r.choice([(f"shl.b64 {{}},{d},{c};", w << k64), (f"shr.u64 {{}},{d},{c};", w >> k64),
                                                      (f"shr.s64 {{}},{d},{c};", s64(w) >> k64)])))
            return
        self.narrow.append(self.new("r", *r.choice([(f"shl.b32 {{}},{a},{by};", i << by), (f"shr.u32 {{}},{a},{by};", i >> by),
                                                    (f"shr.s32 {{}},{a},{by};", s32(i) >> by)])))
        self.wide.append(self.new("d", *r.choice([(f"shl.b64 {{}},{d},{far};", w << far), (f"shr.u64 {{}},{d},{far};", w >> far),
                                                  (f"shr.s64 {{}},{d},{far};", s64(w) >> far)])))

    def extend_step(self, x, y, z, u, v):
        (a, i), (b, j), (d, w) = x, y, u
        unsigned = str(j) if b[0] != "%" else b
        self.wide.append(self.new("d", *self.chance.choice([
            (f"cvt.s64.s32 {{}},{a};", s32(i)), (f"cvt.u64.u32 {{}},{a};", i),
            (f"mul.wide.s32 {{}},{a},{b};", s32(i) * s32(j)), (f"mul.wide.u32 {{}},{a},{unsigned};", i * j),
            (f"mad.wide.s32 {{}},{a},{b},{d};", s32(i) * s32(j) + w), (f"mad.wide.u32 {{}},{a},{unsigned},{d};", i * j + w)])))

    def wide_step(self, x, y, z, u, v):
        (d, w), (e, t) = u, v
        self.wide.append(self.new("d", *self.chance.choice([
            (f"add.s64 {{}},{d},{e};", w + t), (f"add.s64 {{}},{d},{e};", w + t), (f"sub.s64 {{}},{d},{e};", w - t),
            (f"mul.lo.s64 {{}},{d},{e};", w * t), (f"and.b64 {{}},{d},{e};", w & t), (f"xor.b64 {{}},{d},{e};", w ^ t),
            (f"min.s64 {{}},{d},{e};", min(s64(w), s64(t))),
            (f"setp.lt.s64 %p998,{d},{e}; selp.b64 {{}},{d},{e},%p998;", w if s64(w) < s64(t) else t)])))

    def branch_step(self, x, y, z, u, v):
        """A value that depends on a condition: chosen, jumped over, or made in a loop."""
        r, (a, i), (b, j), (c, k) = self.chance, x, y, z
        self.n += 3
        label, p, n = f"L{self.n}", f"%p{self.n}", f"%r{self.n - 1}"
        result, value = self.new("r", f"mov.u32 {{}},{a};", i)
        less = s32(i) < s32(j)
        how = r.randrange(4)
        if how == 0:
            self.text.append(f"setp.lt.s32 {p},{a},{b}; @{p} add.s32 {result},{result},{c};")
            value += k if less else 0
        elif how == 1:
            self.text.append(f"setp.lt.s32 {p},{a},{b}; selp.b32 {result},{a},{c},{p};")
            value = i if less else k
        elif how == 2:
            self.text.append(f"setp.lt.s32 {p},{a},{b}; @{p} bra {label}; mul.lo.s32 {result},{result},{c}; "
                             f"xor.b32 {result},{result},{a}; st.volatile.global.u32 [%d990],{result};\n{label}:")
            value = value if less else (value * k) ^ i
        else:
            times = self.env["tid.y"] % 7 + 1
            first = next(name for name, _ in self.narrow[2:3])
            self.text.append(f"rem.u32 {n},{first},7; add.u32 {n},{n},1;\n{label}: mad.lo.s32 {result},{result},3,{c}; "
                             f"sub.s32 {n},{n},1; setp.ne.s32 {p},{n},0; @{p} bra {label};")
            for _ in range(times):
                value = value * 3 + k
        self.narrow.append((result, value & M32))

    def access(self):
        """The pointer plus an index, and one of the kinds of access whose result may take the place of the address."""
        r, (a, i), (d, w) = self.chance, self.narrow[-1], self.wide[-1]
        size, offset = r.choice([1, 2, 4, 8, 16]), r.choice([0, 0, 0, 4, -16, 4096])
        base = self.new("d", "ld.param.u64 {},[p];", self.env["p"])
        index = self.new("d", *r.choice([
            (f"mul.wide.s32 {{}},{a},{size};", s32(i) * size), (f"mul.wide.u32 {{}},{a},{size};", i * size),
            (f"shl.b64 {{}},{d},{size.bit_length() - 1};", w * size), (f"mul.lo.s64 {{}},{d},{size + 8};", w * (size + 8))]))
        at = self.new("d", f"add.s64 {{}},{base[0]},{index[0]};", base[1] + index[1])
        self.address = at[1] + offset & M64
        self.text.append(r.choice([
            "ld.global.u8 %h1,[{0}]; st.global.u8 [%d990],%h1;", "ld.global.s16 %h1,[{0}]; st.global.s16 [%d990],%h1;",
            "ld.global.u32 %r990,[{0}]; st.global.u32 [%d990],%r990;", "ld.global.u64 %d991,[{0}]; st.global.u64 [%d990],%d991;",
            "ld.global.v4.u32 {{%r990,%r991,%r992,%r993}},[{0}]; st.global.v4.u32 [%d990],{{%r990,%r991,%r992,%r993}};",
            "atom.global.exch.b32 %r990,[{0}],7; st.global.u32 [%d990],%r990;"]).format(f"{at[0]}+{offset}"))

    def ptx(self, name):
        return (f".visible .entry {name}(" + ", ".join(f".param .u{64 if p in PARAMS[:5] else 32} {p}" for p in PARAMS) +
                ") {\n.reg .b16 %h<9>; .reg .b32 %r<999>; .reg .b64 %d<999>; .reg .pred %p<999>;\n"
                "ld.param.u64 %d990,[q];\n" + "\n".join(self.text) + "\nret;\n}\n")

    def lane(self, arch):
        e = self.env
        params = b"".join(struct.pack("<Q" if p in PARAMS[:5] else "<I", e[p]) for p in PARAMS)
        return (f"{0x160 if arch < 90 else 0x210 if arch < 100 else 0x380:x} {params.hex()} {e['tid.x']},{e['tid.y']},0 "
                f"{e['ctaid.x']},{e['ctaid.y']},0 {e['ntid.x']},1,1 {e['nctaid.x']},1,1")


def assemble(kernels, arch, level, tmp):
    source, out = os.path.join(tmp, "e.ptx"), os.path.join(tmp, f"e{arch}_{level}.cubin")
    for ptxas in tool("ptxas") + tool("ptxas-blackwell"):
        for version in ("8.8", "8.7", "8.5"):
            with open(source, "w") as f:
                f.write(f".version {version}\n.target sm_{arch}\n.address_size 64\n" +
                        "".join(k.ptx(f"k{i}") for i, k in enumerate(kernels)))
            if subprocess.run([ptxas, f"-O{level}", "-arch", f"sm_{arch}", source, "-o", out],
                              capture_output=True).returncode == 0:
                return out
    return None


# ---- addresses --------------------------------------------------------------------------------------------

def decoder(tmp):
    out = os.path.join(tmp, "eval_decode")
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-I" + os.path.join(ROOT, "src"),
                    os.path.join(HERE, "eval_decode.c")] + [os.path.join(ROOT, f) for f in check_assert.EXECUTOR] +
                   ["-lm", "-o", out], check=True)
    return out


def decode(path, lines, image=None):
    return subprocess.run([path] + ([image] if image else []), input="".join(lines), capture_output=True, text=True,
                          check=True).stdout.splitlines()


def accesses(image, kernels):
    """(kernel, pc, word) of every access to global memory whose address could be known."""
    for address, size, name in image.functions:
        section = next(s for s in image.sections if s[2] & 4 and s[3] <= address < s[3] + s[5])
        for at in range(0, size, 16):
            word = struct.unpack_from("<QQ", image.data, section[4] + address - section[3] + at)
            if word[0] & 0x1ff in (0x181, 0x1a8, 0x186):
                yield kernels[int(name[1:])], address + at, word


def check_addresses(kernels, arch, level, cubin, path, tmp):
    """(loads, known ones, stores, known ones, both with registers, complaints)"""
    image, out = Image(cubin), os.path.join(tmp, "relocated.bin")
    with open(out, "wb") as f:
        f.write(image.data)
    found = list(accesses(image, kernels))
    lines = [f"address {arch} {pc:x} {pc + 16:x} {word[0]:x} {word[1]:x} {k.lane(arch)}\n" for k, pc, word in found]
    count, wrong = [0, 0, 0, 0, 0], []
    for (k, pc, word), got in zip(found, decode(path, lines, out), strict=True):
        store = word[0] & 0x1ff == 0x186
        want = k.env["q"] if store else k.address
        got, with_registers = got.split()
        count[2 * store] += 1
        count[2 * store + 1] += got != "?"
        count[4] += with_registers != "?"
        if not {got, with_registers} <= {"?", f"{want:x}"}:
            wrong.append(f"    sm_{arch} -O{level} {pc:x}: have {got} and {with_registers} want {want:x}\n" + "\n".join(k.text))
    return (*count, wrong)


# ---- single instructions ----------------------------------------------------------------------------------

def normal(text):
    """The text without what is irrelevant here: names for special cases, predicates that are always true, zeros."""
    text = re.sub(r"\.reuse", "", re.sub(r"\s+[&?].*", "", text))
    name, _, rest = text.partition(" ")
    operands = [o.strip() for o in rest.split(",")]
    name = re.sub(r"^(U?IMAD)\.(MOV|SHL|IADD)", r"\1", name)
    mods = name.split(".")
    if mods[0] in ("IMAD", "UIMAD"):
        mods = mods[:1] + sorted(mods[1:])
    operands = [o for o in operands if o not in ("PT", "UPT")]
    number = [f"{int(o, 16) & M32:x}" if re.fullmatch(r"-?0x[0-9a-f]+", o) else o for o in operands]
    number = [re.sub(r"c\[0x0*(\w+)\]\[(?:0x0*)?(\w*)\]", lambda m: f"c[{m[1]}][{m[2] or '0'}]", o) for o in number]
    return ".".join(mods), *number


def predicates(text):
    """Predicates that the text says are written, as bits."""
    text = re.sub(r"\s+[&?].*", "", text)
    text = re.sub(r"^@!?U?P\w+\s+", "", text)
    name, _, rest = text.partition(" ")
    if re.match(r"ST|RED|BAR|B[A-Z]|EXIT|RET|CALL|NOP|MEMBAR|ERRBAR|CCTL|WARPSYNC|YIELD|JM|NANOSLEEP|DEPBAR", name):
        return 0
    mask, registers = 0, 0
    for o in rest.split(","):
        m = re.fullmatch(r"U?P([0-6])", o.strip())
        if m:
            mask |= 1 << int(m[1])
        elif o.strip() not in ("PT", "UPT"):
            registers += 1
            if registers > 1 or not re.fullmatch(r"U?R(\d+|Z)", o.strip()):
                break
    return mask


def check_math(arch, pairs, path):
    """(instructions understood, names of the others, complaints)"""
    n, others, wrong = 0, {}, []
    have = decode(path, [f"math {arch} {lo:x} {hi:x}\n" for (lo, hi), _ in pairs])
    for (word, text), line in zip(pairs, have, strict=True):
        mask, _, got = line.partition(" ")
        missing = predicates(text) & ~int(mask, 16)
        if missing and got == "-":
            wrong.append(f"    sm_{arch} {word[0]:016x} {word[1]:016x} {text}\n      predicates {missing:x}")
        if got == "-":
            others.setdefault(text.split()[0], text)
            continue
        n += 1
        if "?" in got:          # a special register that has no value
            continue
        if normal(got) != normal(text):
            wrong.append(f"    sm_{arch} {word[0]:016x} {word[1]:016x} {text}\n      have {got}")
    return n, others, wrong


def flipped(arch, pairs, name, path, tmp):
    """Samples of each form with one bit flipped."""
    samples = {}
    have = decode(path, [f"math {arch} {lo:x} {hi:x}\n" for (lo, hi), _ in pairs])
    for ((lo, hi), text), line in zip(pairs, have):
        if not line.endswith("-"):
            samples.setdefault((lo & 0xfff, text.split()[0]), []).append((lo, hi))
    return disassemble(name, one_bit_off(samples, 0), tmp)


TABLE_HEAD = """/* SPDX-License-Identifier: Apache-2.0
 * Kernels of our own and the address that their load accesses. Written by tests/dump/check_eval.py --table.
 *
 * EVAL(arch, offset of the load, address, tid.x, tid.y, ctaid.x, ctaid.y, ntid.x, nctaid.x, (parameters), code...)
 */
"""


def table_rows(kernels, arch, level, cubin, path, tmp):
    """A few short kernels whose address is known, with as many different instructions as possible."""
    image, rows, seen = Image(cubin), [], set()
    out = os.path.join(tmp, "relocated.bin")
    with open(out, "wb") as f:
        f.write(image.data)
    starts = {int(name[1:]): (address, size) for address, size, name in image.functions}
    for k, pc, word in accesses(image, kernels):
        start, size = starts[kernels.index(k)]
        section = next(s for s in image.sections if s[2] & 4 and s[3] <= start < s[3] + s[5])
        words = [struct.unpack_from("<QQ", image.data, section[4] + start - section[3] + at) for at in range(0, size, 16)]
        words = [w for w in words if w[0] & 0xfff != 0x918]
        got, = decode(path, [f"address {arch} {pc:x} {pc + 16:x} {word[0]:x} {word[1]:x} {k.lane(arch)}\n"], out)
        got = got.split()[0]
        kinds = {(w[0] & 0xfff, w[1] >> 8 & 0x7ff) for w in words if w[0] & 0x1ff < 0x100}
        if word[0] & 0x1ff == 0x186 or got != f"{k.address:x}" or len(words) > 40 or len(kinds - seen) < 7:
            continue
        seen |= kinds
        e = k.env
        params = b"".join(struct.pack("<Q" if p in PARAMS[:5] else "<I", e[p]) for p in PARAMS) + b"\0" * 4
        rows.append(f"/* -O{level} */\nEVAL({arch}, 0x{pc - start:x}, 0x{k.address:x}, " +
                    ", ".join(str(e[x]) for x in ("tid.x", "tid.y", "ctaid.x", "ctaid.y", "ntid.x", "nctaid.x")) + ",\n\t(" +
                    ", ".join(f"0x{x:x}" for x in struct.unpack("<7Q", params)) + "),\n\t" +
                    ",\n\t".join(f"0x{lo:016x}, 0x{hi:016x}" for lo, hi in words) + ")")
    return rows


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--table", metavar="FILE")
    args.add_argument("--arch", type=int, action="append")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--verbose", action="store_true", help="name instructions that are not understood")
    args = args.parse_args()
    if not tool("nvdisasm") or not tool("ptxas"):
        print("SKIP: ptxas and nvdisasm are not installed")
        return 0
    rows = []
    kernels, failed = [Kernel(args.seed * 100000 + i) for i in range(KERNELS)], False
    with tempfile.TemporaryDirectory() as tmp:
        path, moves = decoder(tmp), check_assert.decoder(tmp)
        for arch in args.arch or ARCHS:
            name, total, wrong, code = known_arch(arch, tmp), [0, 0, 0, 0, 0], [], set()
            for level in (0, 1, 2, 3):
                cubin = assemble(kernels, arch, level, tmp)
                if not cubin:
                    break
                *more, bad = check_addresses(kernels, arch, level, cubin, path, tmp)
                total, wrong = [a + b for a, b in zip(total, more)], wrong + bad
                code.update(code_of(cubin))
                if args.table and arch in (75, 80, 90, 100, 120) and level == 3:
                    rows += table_rows(kernels, arch, level, cubin, path, tmp)
            if not total[0] or not name:
                print(f"sm_{arch}: SKIP: {'nvdisasm' if total[0] else 'ptxas'} does not know it")
                continue
            pairs = disassemble(name, sorted(code), tmp)
            extra = flipped(arch, pairs, name, path, tmp)
            (n, others, bad), (m, _, worse) = check_math(arch, pairs, path), check_math(arch, extra, path)
            # which registers the others write
            wrong += bad + worse + check_assert.check_moves(arch, pairs + extra, moves)[1]
            print(f"sm_{arch}: {total[1]} of {total[0]} loads known, {total[3]} of {total[2]} stores, {total[4]} with registers, {n} instructions, "
                  f"{m} with a flipped bit of {len(extra)}, {len(wrong)} wrong", flush=True)
            print("\n".join(wrong[:12]), end="\n" if wrong else "")
            if args.verbose:
                print("  not understood: " + "\n    ".join(others.values()))
            failed = failed or bool(wrong) or total[1] * 2 < total[0]
    if args.table:
        with open(args.table, "w") as f:
            f.write(TABLE_HEAD + "\n".join(rows) + "\n#undef EVAL\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
