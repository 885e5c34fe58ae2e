#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how the arguments of a failed assertion are found in code (src/find/fault/assert_args.c), on our own kernels.

Kernels in PTX call __assertfail in many ways: in divergent code, in loops, in functions that are not inlined, with
values alive across the call, one after another. They are assembled for each architecture and optimization level; the
image gets run-time addresses, as from the driver; then the arguments are worked out at every call. Each assertion
has its own line, so that a wrong answer shows. An answer may be unknown; it must never be wrong.
Single instructions, also with a bit flipped, are compared with nvdisasm's text as check_sass.py does.

The tools are found as check_sass.py describes. --table FILE writes the test data of tests/unit/test_assert.c.
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile

from check_sass import ARCHS, HERE, ROOT, code_of, disassemble, known_arch, one_bit_off, tool

DATA_AT, SYSCALL_AT, CODE_AT = 0x7f0000000000, 0x7e0000000000, 0x7d0000000000
REGISTERS = (".reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<20>; .reg .pred %p<8>; .reg .b64 %a<4>;\n")
START = ("ld.param.u64 %d1,[p]; ld.param.u32 %r1,[n]; mov.u32 %r2,%tid.x; mov.u32 %r3,%ctaid.x; "
         "mul.wide.u32 %d2,%r2,4; add.s64 %d3,%d1,%d2;\n")


# ---- kernels ----------------------------------------------------------------------------------------------

class Program:
    """PTX text; `truth` holds what each line asserts: line -> (message, file, function)."""

    def __init__(self):
        self.texts, self.kernels, self.functions, self.truth = {}, [], [], {}
        self.labels = 0

    def text(self, kind, value):
        for name, known in self.texts.items():
            if known == value and name.startswith(kind):
                return name
        name = f"{kind}{len(self.texts)}"
        self.texts[name] = value
        return name

    def check(self, predicate, function):
        """Asserts that the predicate is true, at its own line."""
        n = len(self.truth)
        line = [7, 245, 1024, 70000, 31744][n % 5] * 8 + n
        message = f"index{'x' * (n % 23)} < size_{n % 7}"
        file = f"/src/{'deep/' * (n % 3)}kernel_{n % 2}.cu"
        self.truth[line] = (message, file, function)
        self.labels += 1
        return (f"@{predicate} bra L{self.labels};\n{{ .reg .b64 %x<8>;\n"
                f"mov.u64 %x1,{self.text('$str$', message)}; cvta.global.u64 %x2,%x1;\n"
                f"mov.u64 %x3,{self.text('$str$', file)}; cvta.global.u64 %x4,%x3;\n"
                f"mov.u64 %x5,{self.text('__unnamed_', function)}; cvta.global.u64 %x6,%x5;\n"
                ".param .b64 m; .param .b64 f; .param .b32 l; .param .b64 u; .param .b64 c;\n"
                f"st.param.b64 [m],%x2; st.param.b64 [f],%x4; st.param.b32 [l],{line}; st.param.b64 [u],%x6;\n"
                f"st.param.b64 [c],1; call.uni __assertfail,(m,f,l,u,c);\n}}\nL{self.labels}:\n")

    def kernel(self, body):
        name = f"kernel_{len(self.kernels)}"
        self.kernels.append(f".visible .entry {name}(.param .u64 p, .param .u32 n) {{\n" + REGISTERS + START +
                            body(name) + "\nret;\n}\n")

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def ptx(self, arch, version):
        data = "".join(f".global .align 1 .b8 {name}[{len(text) + 1}] = {{{','.join(map(str, text.encode()))},0}};\n"
                       for name, text in self.texts.items())
        return (f".version {version}\n.target sm_{arch}\n.address_size 64\n"
                ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
                ".param .b64 e);\n" + data + "".join(self.functions) + "".join(self.kernels))


def program():
    p = Program()
    load = "ld.global.u32 %r5,[%d3];"
    # one, and the value is used afterwards
    p.kernel(lambda k: load + "setp.lt.s32 %p1,%r5,%r1;" + p.check("%p1", k) + "st.global.u32 [%d3],%r5;")
    # several in a row, values alive
    p.kernel(lambda k: load + "setp.lt.s32 %p1,%r5,%r1; setp.ge.s32 %p2,%r5,0;" + p.check("%p1", k) +
             p.check("%p2", k) + "ld.global.u32 %r6,[%d3+64]; setp.ne.s32 %p3,%r6,7;" + p.check("%p3", k) +
             "add.s32 %r7,%r5,%r6; st.global.u32 [%d3],%r7;")

    # in a loop
    def loop(k):
        top = p.label()
        return ("mov.u32 %r10,0;\n" + top + ":\n mul.wide.u32 %d5,%r10,4; add.s64 %d6,%d3,%d5; "
                "ld.global.u32 %r5,[%d6]; setp.lt.s32 %p1,%r5,%r1;\n" + p.check("%p1", k) +
                "add.s32 %r11,%r11,%r5; st.global.u32 [%d6],%r11; add.s32 %r10,%r10,1; "
                f"setp.lt.s32 %p2,%r10,%r3; @%p2 bra {top};")
    p.kernel(loop)

    # unrolled, two assertions each time
    def unrolled(k):
        body = ""
        for i in range(6):
            body += (f"ld.global.u32 %r{12 + i},[%d3+{i * 128}]; setp.lt.s32 %p1,%r{12 + i},%r1;" + p.check("%p1", k) +
                     f"setp.ge.s32 %p2,%r{12 + i},-5;" + p.check("%p2", k))
        return body + "".join(f"st.global.u32 [%d3+{i * 64}],%r{12 + i};" for i in range(6))
    p.kernel(unrolled)

    # floating point, as losses check their input
    p.kernel(lambda k: "ld.global.f32 %f1,[%d3]; setp.ge.f32 %p1,%f1,0f00000000; setp.le.and.f32 %p2,%f1,0f3f800000,%p1;" +
             p.check("%p2", k) + "lg2.approx.f32 %f2,%f1; st.global.f32 [%d3],%f2;")
    # always the same for all threads
    p.kernel(lambda k: "setp.gt.u32 %p1,%r1,%r3;" + p.check("%p1", k) + "st.global.u32 [%d3],%r1;")
    p.kernel(lambda k: "setp.ne.u32 %p1,%r1,%r1;" + p.check("%p1", k) + "st.global.u32 [%d3],%r1;")

    # two ways to get near one assertion: if and else
    def either(k):
        other, end = p.label(), p.label()
        return (load + f"setp.lt.s32 %p1,%r2,16; @%p1 bra {other};\n setp.lt.s32 %p2,%r5,%r1;" + p.check("%p2", k) +
                f"bra {end};\n{other}: setp.gt.s32 %p3,%r5,%r1;" + p.check("%p3", k) +
                f"{end}: st.global.u32 [%d3],%r5;")
    p.kernel(either)

    # a warp that may have diverged reconverges for a shuffle
    def shuffle(k):
        top, other = p.label(), p.label()
        return (load + f"mov.u32 %r10,0;\n setp.lt.s32 %p4,%r5,7; @%p4 bra {other};\n" + f"{top}: add.s32 %r10,%r10,%r5; "
                f"setp.lt.s32 %p2,%r10,%r1; @%p2 bra {top};\n{other}: shfl.sync.down.b32 %r6,%r10,16,31,-1; "
                "add.s32 %r10,%r10,%r6; shfl.sync.down.b32 %r6,%r10,8,31,-1; setp.lt.s32 %p1,%r6,%r1;" +
                p.check("%p1", k) + "shfl.sync.down.b32 %r7,%r6,4,31,-1; st.global.u32 [%d3],%r7;")
    p.kernel(shuffle)

    # a jump table
    def table(k):
        labels = [p.label() for _ in range(4)]
        end = p.label()
        body = (load + "and.b32 %r6,%r5,3;\n ts: .branchtargets " + ",".join(labels) + ";\n brx.idx %r6, ts;\n")
        for i, at in enumerate(labels):
            body += f"{at}: setp.lt.s32 %p1,%r5,{i * 100}; " + p.check("%p1", k) + f"st.global.u32 [%d3+{i * 4}],%r5; bra {end};\n"
        return body + f"{end}: st.global.u32 [%d3+64],%r5;"
    p.kernel(table)

    # a function that is not inlined
    inner = ("ld.param.u32 %r1,[n]; ld.param.u32 %r5,[v]; setp.lt.s32 %p1,%r5,%r1;" + p.check("%p1", "helper") +
             "setp.ne.s32 %p2,%r5,77;" + p.check("%p2", "helper") + "add.s32 %r6,%r5,%r1; st.param.b32 [o],%r6; ret;")
    p.functions.append(".func (.param .b32 o) helper(.param .b32 v, .param .b32 n) {\n" + REGISTERS + inner + "}\n")
    p.kernel(lambda k: load + "{ .param .b32 o; .param .b32 v; .param .b32 m; st.param.b32 [v],%r5; "
             "st.param.b32 [m],%r1; call.uni (o), helper,(v,m); ld.param.b32 %r6,[o]; }\n"
             "setp.lt.s32 %p1,%r6,%r1;" + p.check("%p1", k) + "st.global.u32 [%d3],%r6;")
    return p


def assemble(p, arch, level, tmp):
    source, out = os.path.join(tmp, "a.ptx"), os.path.join(tmp, f"a{arch}_{level}.cubin")
    for ptxas in tool("ptxas") + tool("ptxas-blackwell"):
        for version in ("8.8", "8.7", "8.5"):
            with open(source, "w") as f:
                f.write(p.ptx(arch, version))
            run = subprocess.run([ptxas, f"-O{level}", "-arch", f"sm_{arch}", source, "-o", out], capture_output=True,
                                 text=True)
            if run.returncode == 0:
                return out
    return None


# ---- the image as the driver loads it -----------------------------------------------------------------------

class Image:
    """A cubin with run-time addresses, as in a core dump; sections by name."""

    def __init__(self, cubin):
        with open(cubin, "rb") as f:
            self.data = bytearray(f.read())
        shoff, = struct.unpack_from("<Q", self.data, 40)
        size, n, names = struct.unpack_from("<HHH", self.data, 58)
        self.at = [shoff + i * size for i in range(n)]
        self.sections = [list(struct.unpack_from("<IIQQQQIIQQ", self.data, a)) for a in self.at]
        self.names = [self.string(self.sections[names][4], s[0]) for s in self.sections]
        self.relocate()

    def string(self, table, off):
        return self.data[table + off:self.data.index(0, table + off)].decode()

    def named(self, name):
        return self.names.index(name) if name in self.names else 0

    def symbols(self):
        table = self.sections[self.named(".symtab")]
        for i in range(table[5] // 24):
            off = table[4] + i * 24
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, off)
            yield i, off, self.string(self.sections[table[6]][4], name), info, section, value, size

    def relocate(self):
        where, data = {}, self.named(".nv.global.init")
        self.texts, self.functions = {}, []
        for i, s in enumerate(self.sections):
            if s[2] & 4:
                s[3] = CODE_AT + i * 0x100000
                struct.pack_into("<Q", self.data, self.at[i] + 16, s[3])
        for i, off, name, info, section, value, size in self.symbols():
            address = value
            if section == data and info & 15 == 1:
                address = DATA_AT + i * 256
                start = self.sections[data][4] + value
                self.texts[address] = bytes(self.data[start:start + size - 1]).decode(errors="replace")
            elif section and self.sections[section][2] & 4:
                address = self.sections[section][3] + value
                if info & 15 == 2:
                    self.functions.append((address, size, name))
            elif not section:
                address = SYSCALL_AT
            where[i] = address
            struct.pack_into("<Q", self.data, off + 8, address)
        bank = self.sections[self.named(".nv.constant4")]
        for i, name in enumerate(self.names):
            if name in (".rel.nv.constant4", ".rela.nv.constant4"):
                table = self.sections[i]
                step = 24 if name.startswith(".rela") else 16
                for r in range(table[5] // step):
                    at, kind = struct.unpack_from("<QQ", self.data, table[4] + r * step)
                    struct.pack_into("<Q", self.data, bank[4] + at, where[kind >> 32])

    def calls(self):
        """Return addresses of the calls of __assertfail: calls by address through the bank."""
        for i, s in enumerate(self.sections):
            if not s[2] & 4:
                continue
            for o in range(0, s[5], 16):
                low, = struct.unpack_from("<Q", self.data, s[4] + o)
                if low & 0xfff == 0x343:
                    yield s[3] + o + 16


# the straight line to an instruction, and what executes it
EXECUTOR = ["src/find/fault/sass%s.c" % part for part in ("", "_line", "_cell", "_exec", "_decide", "_arith", "_math", "_compute", "_move")] + [
    "src/formats/image.c", "src/formats/elf_sections.c", "src/base/mem.c"]


def decoder(tmp):
    out = os.path.join(tmp, "assert_decode")
    files = ["src/find/fault/assert_args.c", *EXECUTOR]
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-I" + os.path.join(ROOT, "src"),
                    os.path.join(HERE, "assert_decode.c")] + [os.path.join(ROOT, f) for f in files] + ["-lm", "-o", out],
                   check=True)
    return out


def decode(path, lines, image=None):
    return subprocess.run([path] + ([image] if image else []), input="".join(lines), capture_output=True, text=True,
                          check=True).stdout.splitlines()


def check_calls(p, arch, level, cubin, path, tmp):
    """(calls, arguments known, lines of complaint)"""
    image = Image(cubin)
    out = os.path.join(tmp, "relocated.bin")
    with open(out, "wb") as f:
        f.write(image.data)
    calls = list(image.calls())
    known, wrong, lines_seen = 0, [], set()
    for pc, line in zip(calls, decode(path, [f"call {arch} {pc:x}\n" for pc in calls], out)):
        args = line.split()
        if len(args) != 4:
            wrong.append(f"    sm_{arch} -O{level} {pc:x}: {line}")
            continue
        got = [image.texts.get(int(a, 16), "not a text") if a != "?" and i != 2 else a for i, a in enumerate(args)]
        known += sum(a != "?" for a in args)
        if args[2] == "?":
            continue
        at = int(args[2], 16)
        lines_seen.add(at)
        want = p.truth.get(at, ("no such line",) * 3)
        have = (got[0], got[1], got[3])
        if any(h not in ("?", w) for h, w in zip(have, want)):
            wrong.append(f"    sm_{arch} -O{level} {pc:x}: line {at} want {want} have {have}")
    # a call mistaken for another one would give a line that does not exist
    unknown = sum(line.split()[2:3] == ["?"] for line in decode(path, [f"call {arch} {pc:x}\n" for pc in calls], out))
    missing = sorted(set(p.truth) - lines_seen)
    if len(missing) != unknown:
        wrong.append(f"    sm_{arch} -O{level}: {unknown} lines unknown, but nobody has {missing}")
    return len(calls), known, wrong


# ---- single instructions -----------------------------------------------------------------------------------

NOTHING, NUMBER, REG, UREG, BANK, ELSEWHERE, ANYWHERE = range(7)


def register(text):
    """(file, number or -1) of "R4", "RZ", "UR4"; None for something else."""
    m = re.fullmatch(r"(U?)R(\d+|Z)", text)
    return m and (m[1] == "U", -1 if m[2] == "Z" else int(m[2]))


def expect(text):
    """What is moved, according to the text: (from, uniform, dest, n, number, reg, reg_uniform, bank, offset), or None when
    it is not a plain move of a value."""
    text = re.sub(r"\.reuse", "", re.sub(r"\s+[&?].*", "", text))
    if text.startswith("@") or "?" in text:
        return None
    name, _, rest = text.partition(" ")
    operands = [o.strip() for o in rest.split(",")]
    dest = register(operands[0])
    if not dest:
        return None
    n = 4 if name.endswith(".128") else 2 if name.endswith(".64") else 1
    source = None
    if name in ("MOV", "MOV.64", "UMOV", "R2UR") and len(operands) == 2:
        source = operands[1]
    elif name in ("IMAD.MOV.U32", "IMAD.U32", "IMAD", "IMAD.MOV") and operands[1:3] == ["RZ", "RZ"]:
        source = operands[3]
    elif name in ("HFMA2.MMA", "HFMA2") and operands[1:3] == ["-RZ", "RZ"] and len(operands) == 5:
        return (NUMBER, *dest, n, None, -1, False, 0, 0)
    elif name in ("LDC", "LDC.64", "ULDC", "ULDC.64", "LDCU", "LDCU.64", "LDCU.128") and len(operands) == 2:
        source = operands[1]
    if source is None:
        return None
    bank = re.fullmatch(r"c\[0x([0-9a-f]+)\]\[(?:(U?R(?:\d+|Z))(?:\+(?=0x))?)?(?:0x([0-9a-f]+))?\]", source)
    if bank:
        index = register(bank[2]) if bank[2] else (name.startswith("LDCU"), -1)
        return (BANK, *dest, n, 0, index[1], index[0], int(bank[1], 16), int(bank[3] or "0", 16))
    reg = register(source)
    if reg:
        return (UREG if reg[0] else REG, *dest, n, 0, reg[1], False, 0, 0)
    if re.fullmatch(r"-?0x[0-9a-f]+", source):
        return (NUMBER, *dest, n, int(source, 16) & 0xffffffff, -1, False, 0, 0)
    return None


def writes(text):
    """Registers that the text says are written first: (uniform, number), or None."""
    text = re.sub(r"^@!?U?P\w+\s+", "", re.sub(r"\s+[&?].*", "", text))
    name, _, rest = text.partition(" ")
    if re.match(r"ST|RED|BAR|BSSY|BSYNC|BRA|EXIT|RET|CALL|R2P|NOP|BPT|MEMBAR|ERRBAR|CCTL|WARPSYNC|YIELD|BREAK", name):
        return None
    operands = [o.strip() for o in rest.split(",")]
    while operands and re.fullmatch(r"U?P[0-6T]", operands[0]) and "SETP" not in name:
        operands.pop(0)
    dest = register(operands[0]) if operands else None
    return dest if dest and dest[1] >= 0 else None


def complain(arch, word, text, have, what):
    return f"    sm_{arch} {word[0]:016x} {word[1]:016x} {text}\n      {what}; have {have}"


def check_moves(arch, pairs, path):
    """(moves recognized, complaints): a recognized move must be right."""
    n, wrong = 0, []
    have = decode(path, [f"move {arch} {lo:x} {hi:x}\n" for (lo, hi), _ in pairs])
    for (word, text), line in zip(pairs, have):
        f = line.split()
        got = (int(f[0]), f[1] == "1", int(f[2]), int(f[3]), int(f[4], 16), int(f[5]), f[6] == "1", int(f[7]), int(f[8], 16))
        if NOTHING < got[0] < ELSEWHERE:
            n += 1
            want = expect(text)
            if not want or any(w is not None and w != g for w, g in zip(want, got)):
                wrong.append(complain(arch, word, text, got, f"want {want}"))
        written = writes(text)
        if written and got[0] != ANYWHERE and (got[0] == NOTHING or got[1] != written[0] or got[2] != written[1]):
            wrong.append(complain(arch, word, text, got, f"writes {written}"))
        # 64 bits may be those of an operand: then too many are taken for written, which is harmless
        name = re.sub(r"^@!?U?P\w+\s+", "", text).split()[0].split(".")
        most = 4 if "128" in name else 2 if {"64", "S64", "U64", "F64", "WIDE"} & set(name) else 1
        if written and got[0] == ELSEWHERE and got[3] < most:
            wrong.append(complain(arch, word, text, got, f"writes {most} registers"))
    return n, wrong


def check_targets(arch, name, code, path, tmp):
    """Branches: nvdisasm names the target as an address in the file."""
    n, wrong, file = 0, [], os.path.join(tmp, "raw.bin")
    some = [w for w in code if w[0] & 0x1ff in (0x144, 0x145, 0x147) or w[0] & 0xfff == 0x348]
    pairs = disassemble(name, some, tmp)
    have = decode(path, [f"move {arch} {lo:x} {hi:x}\n" for (lo, hi), _ in pairs])
    if len(pairs) != len(some) or not os.path.exists(file):
        return 0, [f"    sm_{arch}: nvdisasm left out a branch"]
    for i, ((word, text), line) in enumerate(zip(pairs, have)):
        m = re.search(r"(-?)0x([0-9a-f]+)\s*(?:[&?].*)?$", text)
        n += 1
        want = int(m[1] + m[2], 16) - i * 16 if m else 0
        if want != int(line.split()[9]) or not m and not text.startswith("WARPSYNC "):
            wrong.append(complain(arch, word, text, line, f"at {i * 16:x}"))
    return n, wrong


def flipped(pairs, name, tmp):
    """Samples of each kind of move with one bit flipped."""
    samples = {}
    for (lo, hi), text in pairs:
        if expect(text):
            samples.setdefault((lo & 0xfff, bool(lo >> 54 & 4)), []).append((lo, hi))
    return disassemble(name, one_bit_off(samples, 9), tmp)


TABLE_HEAD = """/* SPDX-License-Identifier: Apache-2.0
 * Kernels of our own up to a failed assertion, and what it is called with. Written by
 * tests/dump/check_assert.py --table.
 *
 * ASSERT(arch, offsets of message, file and function in the bank of addresses, line, code...)
 */
"""


def table_rows(p, arch, level, cubin):
    """The first kernels: their code up to the call, and where the arguments come from."""
    image, rows = Image(cubin), []
    bank = image.sections[image.named(".nv.constant4")]
    slots = {image.texts.get(struct.unpack_from("<Q", image.data, bank[4] + o)[0]): o for o in range(0, bank[5], 8)}
    for kernel in (0, 2):
        i = image.named(f".text.kernel_{kernel}")
        s = image.sections[i]
        back = next(pc for pc in image.calls() if s[3] <= pc - 16 < s[3] + s[5])
        words = [struct.unpack_from("<QQ", image.data, s[4] + o) for o in range(0, back - s[3], 16)]
        line = next(n for n, what in p.truth.items() if what[2] == f"kernel_{kernel}")
        message, file, function = p.truth[line]
        code = ",\n\t".join(f"0x{lo:016x}, 0x{hi:016x}" for lo, hi in words)
        rows.append(f"/* -O{level} */\nASSERT({arch}, 0x{slots[message]:x}, 0x{slots[file]:x}, 0x{slots[function]:x}, "
                    f"{line},\n\t{code})")
    return rows


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--table", metavar="FILE")
    args.add_argument("--arch", type=int, action="append")
    args = args.parse_args()
    if not tool("nvdisasm") or not tool("ptxas"):
        print("SKIP: ptxas and nvdisasm are not installed")
        return 0
    failed, p, rows = False, program(), []
    with tempfile.TemporaryDirectory() as tmp:
        path = decoder(tmp)
        for arch in args.arch or ARCHS:
            name, calls, known, wrong, code = known_arch(arch, tmp), 0, 0, [], set()
            for level in (0, 1, 2, 3):
                cubin = assemble(p, arch, level, tmp)
                if not cubin:
                    break
                more = check_calls(p, arch, level, cubin, path, tmp)
                calls, known, wrong = calls + more[0], known + more[1], wrong + more[2]
                code.update(code_of(cubin))
                if arch in (75, 80, 90, 100, 120) and level in (0, 3):
                    rows += table_rows(p, arch, level, cubin)
            if not calls or not name:
                print(f"sm_{arch}: SKIP: {'nvdisasm' if calls else 'ptxas'} does not know it")
                continue
            pairs = disassemble(name, sorted(code), tmp)
            extra = flipped(pairs, name, tmp)
            (moves, bad), (others, worse) = check_moves(arch, pairs, path), check_moves(arch, extra, path)
            targets, worst = check_targets(arch, name, sorted(code), path, tmp)
            wrong += bad + worse + worst
            print(f"sm_{arch}: {calls} calls, {known} of {calls * 4} arguments known, {moves} moves, {others} with a "
                  f"flipped bit of {len(extra)}, {targets} branches, {len(wrong)} wrong", flush=True)
            print("\n".join(wrong[:20]), end="\n" if wrong else "")
            failed = failed or bool(wrong) or known < calls * 3
    if args.table:
        with open(args.table, "w") as f:
            f.write(TABLE_HEAD + "\n".join(rows) + "\n#undef ASSERT\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
