#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the instruction decoder (src/find/fault/sass.c) against NVIDIA's disassembler, on our own kernels.

Kernels are written in PTX, assembled with ptxas for each architecture, disassembled with nvdisasm, and every
access to memory is compared: kind, space, width, registers, offset. Then single bits of these instructions are
flipped, to cover forms that the assembler did not choose, and what nvdisasm accepts is compared as well.

The tools are looked for in $CUDA_BIN, on the PATH and in an installed Triton ($TRITON or the Python that runs
this). Without them the check is skipped. --table FILE writes the test data of tests/unit/test_dump.c,
--cubin FILE compares all instructions of a cubin instead.
"""
import argparse
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ARCHS = [75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121]
# an nvdisasm that does not know an architecture reads it as its sibling
SIBLING = {103: 100, 121: 120}
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ACCESS = ("LDG", "LD", "LDL", "LDS", "LDSM", "STG", "ST", "STL", "STS", "STSM", "ATOM", "ATOMG", "ATOMS", "RED",
          "REDG", "LDGSTS")
FLIPS = range(16, 105)


def tool(name):
    """The tools of that name that can be found, best first."""
    folders = [os.environ.get("CUDA_BIN", ""), os.environ.get("TRITON", "")]
    spec = importlib.util.find_spec("triton")
    if spec and spec.origin:
        folders.append(os.path.join(os.path.dirname(spec.origin), "backends", "nvidia", "bin"))
    found = [os.path.join(f, name) for f in folders if f and os.access(os.path.join(f, name), os.X_OK)]
    return found + [p for p in [shutil.which(name)] if p]


# ---- kernels ----------------------------------------------------------------------------------------------

REGISTERS = (".reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<20>; .reg .f64 %g<20>; "
             ".reg .pred %p<8>; .reg .b128 %q<4>;\n")
START = ("ld.param.u64 %d1,[p]; ld.param.u64 %d2,[q]; ld.param.u32 %r1,[n]; ld.param.u64 %d3,[o]; "
         "mov.u32 %r2,%tid.x; mov.u32 %r3,%ctaid.x;\n")
INDEX = ("cvta.to.global.u64 %d4,%d1; mul.wide.s32 %d5,%r2,16; add.s64 %d4,%d4,%d5; "
         "cvta.to.global.u64 %d6,%d2; add.s64 %d6,%d6,%d5; add.s64 %d8,%d1,%d5; add.s64 %d9,%d2,%d5;\n")
SHARED = ("shl.b32 %r5,%r2,4; mov.u32 %r6,fixed; add.u32 %r7,%r6,%r5; mov.u32 %r8,dynamic; add.u32 %r9,%r8,%r5;\n")
LOCAL = ("and.b32 %r5,%r2,31; shl.b32 %r6,%r5,4; mov.u32 %r7,stack; add.u32 %r8,%r7,%r6; add.u32 %r9,%r7,%r1;\n")
FOUR = "{%r11,%r12,%r13,%r14}"


def plain(add):
    kinds = (("u8", "h"), ("s8", "h"), ("u16", "h"), ("s16", "h"), ("b32", "r"), ("b64", "d"))
    for t, r in kinds:
        for off in (0, 4096, -64):
            add(INDEX + f"ld.global.{t} %{r}10,[%d4+{off}]; st.global.{t} [%d6+{off + 16}],%{r}10;")
        add(INDEX + f"ld.{t} %{r}10,[%d8+8]; st.{t} [%d9+-8],%{r}10;")
        add(SHARED + INDEX + f"ld.global.{t} %{r}10,[%d4]; st.shared.{t} [%r7+64],%{r}10; bar.sync 0; "
            f"ld.shared.{t} %{r}11,[%r9+-16]; st.global.{t} [%d6],%{r}11;")
        add(LOCAL + INDEX + f"ld.global.{t} %{r}10,[%d4]; st.local.{t} [%r8+16],%{r}10; "
            f"ld.local.{t} %{r}11,[%r9+32]; st.global.{t} [%d6],%{r}11;")
    for n, t, r in ((2, "u32", "r"), (4, "u32", "r"), (2, "u64", "d"), (2, "u16", "h"), (4, "u8", "h")):
        regs = "{" + ",".join(f"%{r}{10 + i}" for i in range(n)) + "}"
        add(INDEX + f"ld.global.v{n}.{t} {regs},[%d4+32]; st.global.v{n}.{t} [%d6+-32],{regs};")
        add(INDEX + f"ld.v{n}.{t} {regs},[%d8+1024]; st.v{n}.{t} [%d9+4096],{regs};")
        add(SHARED + INDEX + f"ld.global.v{n}.{t} {regs},[%d4]; st.shared.v{n}.{t} [%r7+512],{regs}; bar.sync 0; "
            f"ld.shared.v{n}.{t} {regs},[%r9+256]; st.global.v{n}.{t} [%d6],{regs};")
        add(LOCAL + INDEX + f"ld.global.v{n}.{t} {regs},[%d4]; st.local.v{n}.{t} [%r8],{regs}; "
            f"ld.local.v{n}.{t} {regs},[%r9]; st.global.v{n}.{t} [%d6],{regs};")
    add(INDEX + "ld.volatile.global.u32 %r10,[%d4]; st.volatile.global.u32 [%d6],%r10;")
    add(INDEX + "ld.global.nc.u32 %r10,[%d4+4]; st.global.cs.u32 [%d6],%r10;")
    add(INDEX + "ld.acquire.gpu.global.u32 %r10,[%d4]; st.release.sys.global.u32 [%d6],%r10;")
    add(INDEX + "setp.lt.s32 %p1,%r2,%r1; @%p1 ld.global.u32 %r10,[%d4]; @!%p1 st.global.u32 [%d6+8],%r1; "
        "@%p1 st.global.u32 [%d6+4],%r10;")
    add("setp.lt.s32 %p1,%r2,%r1; @%p1 trap; @!%p1 brkpt;")


def atomics(add):
    ops = (("add", "u32", "r"), ("add", "u64", "d"), ("min", "s32", "r"), ("max", "s64", "d"), ("and", "b32", "r"),
           ("exch", "b32", "r"), ("exch", "b64", "d"), ("inc", "u32", "r"), ("add", "f32", "f"), ("add", "f64", "g"))
    source = {"r": "%r1", "d": "%d3", "f": "%f1", "g": "%g1"}
    size = {"r": "b32", "d": "b64", "f": "f32", "g": "f64"}
    make = "mov.b32 %f1,%r1; mov.b64 %g1,%d3;"
    for space, a in ((".global", "%d4"), (".shared", "%r7"), ("", "%d8")):
        for op, t, r in ops:
            add(SHARED + INDEX + make + f"atom{space}.{op}.{t} %{r}10,[{a}+16],{source[r]}; "
                f"st.global.{size[r]} [%d6],%{r}10;")
            if op != "exch":
                add(SHARED + INDEX + make + f"red{space}.{op}.{t} [{a}+-16],{source[r]};")
        add(SHARED + INDEX + f"atom{space}.cas.b32 %r10,[{a}+8],%r1,%r2; st.global.u32 [%d6],%r10;")
        add(SHARED + INDEX + f"atom{space}.cas.b64 %d10,[{a}+8],%d3,%d5; st.global.u64 [%d6],%d10;")
        add(SHARED + INDEX + f"cvt.u16.u32 %h1,%r1; cvt.u16.u32 %h2,%r2; atom{space}.cas.b16 %h3,[{a}+8],%h1,%h2; "
            "st.global.b16 [%d6],%h3;")
    add(INDEX + "atom.global.add.noftz.f16x2 %r10,[%d4],%r1; st.global.u32 [%d6],%r10;")


def uniform(add):
    base = "cvta.to.global.u64 %d4,%d1;"
    add(base + "ld.global.u32 %r10,[%d4+16]; add.u32 %r10,%r10,%r2; st.global.u32 [%d4+8],%r10; "
        "atom.global.add.u32 %r11,[%d4],1; st.global.u32 [%d4+12],%r11; red.global.max.u32 [%d4+64],%r11;")
    add(base + "cvt.u64.u32 %d5,%r2; add.s64 %d8,%d4,%d5; ld.global.u8 %h1,[%d8]; st.global.u8 [%d8+7],%h1;")
    add(base + "mul.wide.u32 %d5,%r3,4; add.s64 %d6,%d4,%d5; mul.wide.u32 %d7,%r2,4; add.s64 %d8,%d6,%d7; "
        "ld.global.u32 %r10,[%d8+16]; st.global.u32 [%d8+128],%r10; red.global.add.u32 [%d8+256],%r1;")
    add(base + "shl.b32 %r5,%r3,4; mov.u32 %r6,fixed; add.u32 %r7,%r6,%r5; st.shared.u32 [%r7+4],%r1; bar.sync 0; "
        "ld.shared.u32 %r10,[%r7+64]; st.global.u32 [%d4],%r10;")


def newer(add, arch):
    add(SHARED + INDEX + f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {FOUR},[%r7+32]; st.global.v4.u32 [%d6],{FOUR}; "
        "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r11},[%r7+64]; st.global.u32 [%d6+16],%r11;")
    if arch >= 80:
        add(SHARED + INDEX + "cp.async.cg.shared.global [%r7],[%d4],16; "
            "cp.async.ca.shared.global [%r7+64],[%d4+128],4; "
            "cp.async.ca.shared.global [%r7+128],[%d4+-128],8,%r1; cp.async.wait_all;")
    if arch >= 90:
        add(INDEX + "mov.b128 %q1,{%d1,%d2}; mov.b128 %q2,{%d3,%d5}; atom.global.cas.b128 %q3,[%d4],%q1,%q2; "
            "mov.b128 {%d10,%d11},%q3; st.global.v2.u64 [%d6],{%d10,%d11};")
        add(INDEX + "mov.b32 %f1,%r1; mov.b32 %f2,%r2; red.global.v4.f32.add [%d4+16],{%f1,%f2,%f1,%f2}; "
            "red.global.v2.f32.add [%d4+32],{%f1,%f2}; atom.global.v4.f32.add {%f3,%f4,%f5,%f6},[%d4+64],"
            "{%f1,%f2,%f1,%f2}; st.global.v4.f32 [%d6],{%f3,%f4,%f5,%f6}; red.global.add.noftz.bf16x2 [%d4+96],%r1;")
        add(SHARED + "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r7+64],{%r1,%r2,%r3,%r5};")
        add(SHARED + "mapa.shared::cluster.u32 %r10,%r7,%r1; ld.shared::cluster.u32 %r11,[%r10]; "
            "st.shared::cluster.u32 [%r10+16],%r11; red.shared::cluster.add.u32 [%r10+32],%r1;")
    if arch >= 100:
        eight = "{" + ",".join(f"%r{10 + i}" for i in range(8)) + "}"
        add(INDEX + f"ld.global.v8.b32 {eight},[%d4+32]; st.global.v8.b32 [%d6+-32],{eight};")


def program(arch, version):
    kernels = []

    def add(body):
        kernels.append(f".visible .entry k{len(kernels)}"
                       "(.param .u64 p, .param .u64 q, .param .u32 n, .param .u64 o) {\n"
                       ".local .align 16 .b8 stack[512];\n" + REGISTERS + START + body + "\nret;\n}\n")

    plain(add)
    atomics(add)
    uniform(add)
    newer(add, arch)
    return (f".version {version}\n.target sm_{arch}\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"
            ".shared .align 16 .b8 fixed[4096];\n" + "".join(kernels))


# ---- the two decoders -------------------------------------------------------------------------------------

def assemble(arch, tmp):
    """The cubin, by the first assembler that knows the architecture; None when there is none."""
    for ptxas in tool("ptxas") + tool("ptxas-blackwell"):
        for version in ("8.8", "8.7", "8.5"):
            source, out = os.path.join(tmp, "k.ptx"), os.path.join(tmp, f"k{arch}.cubin")
            with open(source, "w") as f:
                f.write(program(arch, version))
            if subprocess.run([ptxas, "-arch", f"sm_{arch}", source, "-o", out], capture_output=True).returncode == 0:
                return out
    return None


def code_of(cubin):
    """The instructions of all .text sections."""
    with open(cubin, "rb") as f:
        data = f.read()
    shoff, = struct.unpack_from("<Q", data, 40)
    size, n = struct.unpack_from("<HH", data, 58)
    code = []
    for i in range(n):
        kind, flags, _, off, length = struct.unpack_from("<IQQQQ", data, shoff + i * size + 4)
        if kind == 1 and flags & 4:
            code += [struct.unpack_from("<QQ", data, off + o) for o in range(0, length, 16)]
    return code


def one_bit_off(samples, first):
    """The first and last word of each kind, with every bit from `first` on flipped in turn."""
    words = set()
    for some in samples.values():
        for lo, hi in (some[0], some[-1]):
            words.update((lo ^ 1 << b, hi) for b in range(first, 64))
            words.update((lo, hi ^ 1 << b) for b in range(0, 41))
    return sorted(words)


def disassemble(arch, code, tmp):
    """The instructions that nvdisasm reads, with their texts. It rejects a file because of a single bad one, and names it."""
    code = list(code)
    path = os.path.join(tmp, "raw.bin")
    while code:
        with open(path, "wb") as f:
            for word in code:
                f.write(struct.pack("<QQ", *word))
        run = subprocess.run([tool("nvdisasm")[0], "-b", f"SM{arch}", path], capture_output=True, text=True)
        bad = {int(a, 16) // 16 for a in re.findall(r"at address 0x([0-9a-f]+)", run.stderr)}
        if not bad:
            break
        code = [word for i, word in enumerate(code) if i not in bad]
    else:
        return []
    texts = {int(m[1], 16) // 16: m[2] for m in re.finditer(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", run.stdout)}
    return [(word, texts[i]) for i, word in enumerate(code) if i in texts]


def known_arch(arch, tmp):
    """The name under which nvdisasm knows this architecture, 0 = not at all."""
    for name in (arch, SIBLING.get(arch)):
        if name and disassemble(name, [(0x000000000000794d, 0x000fea0003800000)], tmp):
            return name
    return 0


def decoder(tmp):
    out = os.path.join(tmp, "sass_decode")
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-I" + os.path.join(ROOT, "src"),
                    os.path.join(HERE, "sass_decode.c"), os.path.join(ROOT, "src/find/fault/sass.c"), "-o", out], check=True)
    return out


def decode(program_path, arch, code):
    text = "".join(f"{arch} {lo:x} {hi:x}\n" for lo, hi in code)
    return subprocess.run([program_path], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


# ---- what nvdisasm's text says -----------------------------------------------------------------------------

def width_of(name, mods):
    if name in ("LDSM", "STSM"):
        return 16
    for m in mods:
        real = re.fullmatch(r"(B?F16|F32|F64)(?:x([0-9]))?", m)
        if real:
            return {"F16": 2, "BF16": 2, "F32": 4, "F64": 8}[real[1]] * int(real[2] or 1)
    for m, width in (("U8", 1), ("S8", 1), ("U16", 2), ("S16", 2), ("S64", 8), ("64", 8), ("128", 16), ("256", 32)):
        if m in mods:
            return width
    return 4


def expect(text):
    """The line that sass_decode should print; None when the text cannot be compared."""
    text = re.sub(r"^@!?U?P\w+\s+", "", re.sub(r"\s+[&?].*", "", text))   # without guard and scheduling
    if re.match(r"BPT\.TRAP", text):
        return "trap"
    name, *mods = text.split(" ")[0].split(".")
    if name not in ACCESS or "?" in text or "INVALID" in text:
        return "-" if name not in ACCESS and "[" not in text else None
    kind = {"L": "load", "S": "store", "A": "atomic", "R": "reduction"}[name[0]]
    space = "shared" if name in ("LDS", "STS", "ATOMS", "LDSM", "STSM") else "local" if name in ("LDL", "STL") else \
        "generic" if name in ("LD", "ST", "ATOM") else "global"
    wide = space in ("global", "generic")
    if wide and "E" not in mods:
        return None
    brackets = re.findall(r"(?:desc\[U?R(\w+)\])?\[([^\]]*)\]", text)
    desc, address = brackets[-1] if name == "LDGSTS" else brackets[0]
    reg, pair, shift, ureg, offset = -1, 0, 0, -1, 0
    for part in address.replace("+-", "+ -").split("+"):
        part = part.strip()
        m = re.fullmatch(r"R(\d+)((?:\.\w+)*)", part)
        if m:
            reg, pair = int(m[1]), int(wide and ".U32" not in m[2])
            scale = re.search(r"\.X(\d+)", m[2])
            shift = int(scale[1]).bit_length() - 1 if scale else 0
        elif re.fullmatch(r"UR\d+", part):
            ureg = int(part[2:])
        elif re.fullmatch(r"-?0x[0-9a-f]+", part):
            offset = int(part, 16)
        elif part and not re.match(r"U?RZ", part):
            return None
    shown = int(desc) if desc and desc.isdigit() else None
    return kind, space, width_of(name, mods), reg, pair, shift, ureg, shown, offset


def agrees(want, have, arch):
    if isinstance(want, str):
        return want == have
    fields = have.split()
    if len(fields) != 9:
        return False
    got = fields[0], fields[1], *(int(x) for x in fields[2:])
    # 8.x prints no descriptors
    same = want[7] is None and (arch < 90 or got[7] == -1) or want[7] == got[7]
    return got[:7] == want[:7] and got[8] == want[8] and same


def flipped(pairs, name, tmp):
    """Forms that the assembler did not choose: samples of each opcode with one bit flipped."""
    samples, words = {}, []
    for (lo, hi), text in pairs:
        if isinstance(expect(text), tuple):
            samples.setdefault(lo & 0xfff, []).append((lo, hi))
    for some in samples.values():
        for lo, hi in (some[0], some[len(some) // 2]):
            for bit in FLIPS:
                words.append((lo ^ 1 << bit, hi) if bit < 64 else (lo, hi ^ 1 << bit - 64))
    return disassemble(name, sorted(set(words)), tmp)


def compare(arch, pairs, program_path):
    n, wrong = 0, []
    have = decode(program_path, arch, [word for word, _ in pairs])
    for (word, text), got in zip(pairs, have):
        want = expect(text)
        if want is None:
            continue
        n += isinstance(want, tuple)
        if not agrees(want, got, arch):
            wrong.append(f"    sm_{arch} {word[0]:016x} {word[1]:016x} {text}\n      want {want}\n      have {got}")
    return n, wrong


def table_rows(arch, pairs, program_path):
    """Few rows: one per opcode, width and shape."""
    rows, seen = [], set()
    for (word, text), got in zip(pairs, decode(program_path, arch, [w for w, _ in pairs])):
        want = expect(text)
        if not isinstance(want, tuple):
            continue
        fields = got.split()
        if not agrees(want, got, arch):
            continue
        key = (word[0] & 0xfff, want[3] >= 0 and want[4], want[6] >= 0, fields[7] != "-1", want[5], want[8] < 0)
        if key in seen and (word[0] & 0xfff, want[2]) in seen:
            continue
        seen.add((word[0] & 0xfff, want[2]))
        seen.add(key)
        kind, space = fields[0].upper(), fields[1].upper()
        rows.append(f"ROW({arch}, 0x{word[0]:016x}, 0x{word[1]:016x}, {kind}, {space}, {', '.join(fields[2:])})")
    return rows


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--table", metavar="FILE")
    args.add_argument("--cubin", metavar="FILE", nargs=2, help="ARCH FILE")
    args.add_argument("--arch", type=int, action="append")
    args = args.parse_args()
    if not tool("nvdisasm") or not (tool("ptxas") or args.cubin):
        print("SKIP: ptxas and nvdisasm are not installed")
        return 0
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as tmp:
        path = decoder(tmp)
        for arch in [int(args.cubin[0])] if args.cubin else args.arch or ARCHS:
            cubin = args.cubin[1] if args.cubin else assemble(arch, tmp)
            name = known_arch(arch, tmp)
            if not cubin or not name:
                print(f"sm_{arch}: SKIP: {'nvdisasm' if cubin else 'ptxas'} does not know it")
                continue
            code = sorted(set(code_of(cubin)))
            pairs = disassemble(name, code, tmp)
            extra = [] if args.cubin else flipped(pairs, name, tmp)
            (n, wrong), (m, more) = compare(arch, pairs, path), compare(arch, extra, path)
            as_name = f" (read as sm_{name})" if name != arch else ""
            print(f"sm_{arch}: {n} accesses, {m} with a flipped bit, {len(wrong + more)} wrong{as_name}", flush=True)
            print("\n".join((wrong + more)[:20]), end="\n" if wrong + more else "")
            failed = failed or bool(wrong + more) or n == 0
            rows += table_rows(arch, pairs + extra, path) if arch in (75, 80, 90, 100, 120) else []
    if args.table:
        with open(args.table, "w") as f:
            f.write("/* SPDX-License-Identifier: Apache-2.0\n * Instructions of kernels of our own and what they are, "
                    "as nvdisasm reads them. Written by\n * tests/dump/check_sass.py --table.\n *\n * ROW(arch, low "
                    "word, high word, kind, space, width, register, is a pair, shift,\n *     uniform register, "
                    "descriptor, offset)\n */\n" + "\n".join(rows) + "\n#undef ROW\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
