#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a GPU core dump fit for this repository: no code but that of our own kernels, no memory, small.

    scrub.py --keep-kernel bad [--allow NAME ...] [--small] FILE.cudacore OUT.cudacore.gz

Kept are the tables with their rows, and, of grids whose kernel is kept, parameters, registers, predicates and
backtraces. Module images go, except those that hold a kernel named by --keep-kernel. Of such an image stay the
code, the symbols of functions and the words of assertions (folders in them crossed out), and only if every function
in it is named by --keep-kernel or --allow: otherwise nothing is written and the unknown ones are listed. Memory, strings that no table
refers to, strings that look like paths and sections of unknown types are dropped as well.

--small also drops empty sections, lanes beyond --warps warps and registers beyond --lanes lanes, the ones with
an exception first. The number of threads and the range of their addresses can then differ from the original.

OUT is compressed as its name says (.gz, .xz). Prints what was kept. Status 0 done, 1 refused, 2 not a dump.
"""
import argparse
import gzip
import lzma
import re
import struct
import sys

SHDR = struct.Struct("<IIQQQQIIQQ")     # name type flags addr offset size link info align entsize
SYM = struct.Struct("<IBBHQQ")          # name info other shndx value size
EHDR = 64
XINDEX, LORESERVE = 0xFFFF, 0xFF00
PROGBITS, SYMTAB, STRTAB, OBJECT, FUNC, EXEC = 1, 2, 3, 1, 2, 4
# data of a module: its strings, and the bank of constants with their addresses
DATA, BANK = ".nv.global.init", ".nv.constant4"
# what compilers call strings that have no name in the source
STRING = re.compile(r"(\$str|__unnamed_|__PRETTY_FUNCTION__|__func__|__FUNCTION__|assertFunc_)[\w$.]*")

CUDBG = 0x80000000
(REGS, ELF_IMAGE, IMAGE, BACKTRACE, DEVICE, CONTEXT, SM, GRID, CTA, WARP, LANE, MODULE, PREDS, PARAMS, UREGS, UPREDS,
 BANKS, META, BARRIERS) = (CUDBG + n for n in range(5, 24))
TABLES = {DEVICE, CONTEXT, SM, GRID, CTA, WARP, LANE, MODULE, BANKS, META}
OF_LANE = {REGS, PREDS, BACKTRACE}
OF_WARP = {UREGS, UPREDS, BARRIERS}
# offsets of the fields that refer to .strtab
STRINGS = {DEVICE: (0, 8, 16), SM: (40,), WARP: (72,), META: (0,)}


class Refused(Exception):
    """The file has code that was not declared as ours."""


class NotADump(Exception):
    """The file cannot be read."""


def fail_if(wrong, why):
    if wrong:
        raise NotADump(why)


def text_at(strings, at):
    end = strings.find(b"\0", at)
    return strings[at:end].decode("utf-8", "replace") if 0 <= at < end else ""


class Section:
    def __init__(self, header, file):
        (self.name_at, self.type, self.flags, self.addr, offset, self.size, self.link, self.info, self.align,
         self.entsize) = header
        self.data = b""
        if self.type not in (0, 8):         # nothing, and space without bytes
            fail_if(offset + self.size > len(file), "a section lies outside the file")
            self.data = file[offset:offset + self.size]
        self.name = ""

    def rows(self):
        return len(self.data) // self.entsize if self.entsize else 0

    def get(self, row, at, form):
        size = struct.calcsize(form)
        if at + size > self.entsize or row >= self.rows():
            return 0
        return struct.unpack_from("<" + form, self.data, row * self.entsize + at)[0]


class Elf:
    """The sections of an ELF64 file, in memory."""

    def __init__(self, file):
        fail_if(len(file) < EHDR or file[:5] != b"\x7fELF\x02", "not an ELF64 file")
        self.header = bytearray(file[:EHDR])
        shoff, = struct.unpack_from("<Q", file, 40)
        stride, count, names = struct.unpack_from("<HHH", file, 58)
        fail_if(stride < SHDR.size or shoff + SHDR.size > len(file), "no section headers")
        zero = SHDR.unpack_from(file, shoff)
        count = count or zero[5]
        names = zero[6] if names == XINDEX else names
        fail_if(shoff + count * stride > len(file) or names >= count, "the section headers are cut off")
        self.sections = [Section(SHDR.unpack_from(file, shoff + i * stride), file) for i in range(count)]
        for s in self.sections:
            s.name = text_at(self.sections[names].data, s.name_at)

    def write(self, sections):
        """The file with these sections (which already have their names and links to other sections)."""
        strings = Strings()
        sections = [s for s in sections if s.name != ".shstrtab"]
        table = make_section(".shstrtab", STRTAB, b"")
        sections.append(table)
        at = [strings.add(s.name) for s in sections]
        table.data = bytes(strings.data)
        out, headers = bytearray(self.header), [bytearray(SHDR.size)]
        for s, name in zip(sections, at):
            out += bytes(-len(out) % (s.align or 1))
            headers.append(SHDR.pack(name, s.type, s.flags, s.addr, len(out), len(s.data), s.link, s.info,
                                     s.align, s.entsize))
            out += s.data
        out += bytes(-len(out) % 8)
        return finish(out, headers)


def finish(out, headers):
    count, names = len(headers), len(headers) - 1
    # more sections than the file's header can count are counted in the first section
    struct.pack_into("<QI", headers[0], 32, count if count >= LORESERVE else 0, names if names >= LORESERVE else 0)
    struct.pack_into("<QQ", out, 32, 0, len(out))
    struct.pack_into("<HHHHH", out, 54, 0, 0, SHDR.size, count if count < LORESERVE else 0,
                     names if names < LORESERVE else XINDEX)
    return bytes(out) + b"".join(bytes(h) for h in headers)


class Strings:
    def __init__(self):
        self.data, self.known = bytearray(b"\0"), {"": 0}

    def add(self, text):
        if text not in self.known:
            self.known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.known[text]


def make_section(name, kind, data, **fields):
    s = Section((0, 0, 0, 0, 0, 0, 0, 0, 0, 0), b"")
    s.name, s.type, s.data, s.align = name, kind, data, 1
    for key, value in fields.items():
        setattr(s, key, value)
    return s


# ---- module images ------------------------------------------------------------------------------------------

def symbols_of(image, kind):
    """Every function or object that is in the image, as (name, symbol)."""
    table = next((s for s in image.sections if s.type == SYMTAB), None)
    if not table:
        return []
    symbols = [SYM.unpack_from(table.data, at) for at in range(0, len(table.data) - SYM.size + 1, SYM.size)]
    fail_if(table.link >= len(image.sections), "a symbol table has no strings")
    names = image.sections[table.link].data
    return [(text_at(names, s[0]), s) for s in symbols if s[1] & 15 == kind and s[3] != 0]


def functions(image):
    return symbols_of(image, FUNC)


def code_sections(image):
    return [(i, s) for i, s in enumerate(image.sections) if s.type == PROGBITS and s.flags & EXEC]


def strangers(image, ours):
    """What is in the image and was not declared as ours, including code that none of our functions covers."""
    have = functions(image)
    found = {name or "(a function without a name)" for name, _ in have if name not in ours}
    for i, s in code_sections(image):
        covered = sum(sym[5] for name, sym in have if sym[3] == i and sym[4] == s.addr and name in ours)
        if covered < len(s.data):
            found.add(s.name)
    return sorted(found)


def cross_out(data):
    """Paths without the names of their folders; the length stays the same."""
    return re.sub(rb"/[\x20-\x7e]*/", lambda m: re.sub(rb"[^/]", b"x", m.group()), data)


def data_sections(image, ours):
    """Strings of assertions. A library's tables may be among them: then none are kept."""
    for i, s in enumerate(image.sections):
        names = [name for name, symbol in symbols_of(image, OBJECT) if symbol[3] == i]
        if s.name == BANK or (s.name == DATA and all(STRING.fullmatch(n) or n in ours for n in names)):
            s.data = cross_out(s.data) if s.name == DATA else s.data
            yield i, s


def rebuild_image(image, ours):
    """The code, the functions' symbols and strings; notes, debug data, constants and the rest are dropped."""
    strings, sections, index = Strings(), [], {}
    for i, s in code_sections(image) + list(data_sections(image, ours)):
        index[i] = len(sections) + 1
        sections.append(make_section(s.name, s.type, s.data, flags=s.flags, addr=s.addr, align=128))
    rows = [SYM.pack(0, 0, 0, 0, 0, 0)]
    kept = functions(image) + [o for o in symbols_of(image, OBJECT) if o[1][3] in index]
    local = sorted(kept, key=lambda f: f[1][1] >> 4 != 0)
    for name, s in local:
        rows.append(SYM.pack(strings.add(name), s[1], s[2], index.get(s[3], 0), s[4], s[5]))
    first_global = 1 + sum(s[1] >> 4 == 0 for _, s in local)
    sections.append(make_section(".symtab", SYMTAB, b"".join(rows), link=len(sections) + 2, info=first_global,
                                 align=8, entsize=SYM.size))
    sections.append(make_section(".strtab", STRTAB, bytes(strings.data)))
    return image.write(sections)


def scrub_image(data, kernels, ours):
    """The image with our own code only, or None when none of the kernels is in it."""
    try:
        image = Elf(data)
    except NotADump:
        return None
    if not kernels & {name for name, _ in functions(image)}:
        return None
    foreign = strangers(image, ours)
    if foreign:
        raise Refused("the image has code that is not declared as ours: " + ", ".join(foreign))
    return rebuild_image(image, ours)


# ---- the dump -----------------------------------------------------------------------------------------------

class Scrubber:
    def __init__(self, file, args):
        self.elf, self.args = Elf(file), args
        self.sections = self.elf.sections
        fail_if(struct.unpack_from("<HH", file, 16) != (4, 190), "not a GPU core dump")
        self.drop = {0}
        self.modules = set()    # handles whose image stays
        self.grids = set()      # (section, row) of grids of those modules
        self.ids = set()        # their ids, with the device they run on
        self.images = 0

    def parent(self, s):
        return self.sections[s.link] if s.link < len(self.sections) else self.sections[0]

    def each(self, *types):
        return ((i, s) for i, s in enumerate(self.sections) if s.type in types and i not in self.drop)

    def run(self):
        for i, s in enumerate(self.sections):
            known = s.type in TABLES | OF_LANE | OF_WARP | {IMAGE, PARAMS} or s.name == ".strtab"
            if not known:
                self.drop.add(i)
        self.scrub_images()
        self.find_grids()
        self.drop_strangers()
        if self.args.small:
            self.shrink()
        self.blank_strings()
        return self.elf.write(self.renumber())

    def scrub_images(self):
        kernels = set(self.args.keep_kernel)
        for i, s in self.each(IMAGE):
            data = scrub_image(s.data, kernels, kernels | set(self.args.allow))
            if data is None:
                self.drop.add(i)
                continue
            s.data = data
            self.images += 1
            self.modules.add(self.parent(s).get(s.info, 0, "Q"))

    def find_grids(self):
        for i, s in self.each(GRID):
            for row in range(s.rows()):
                if s.get(row, 32, "Q") in self.modules:
                    self.grids.add((i, row))
                    self.ids.add((s.info, s.get(row, 0, "Q")))

    def place(self, s):
        """(SM section and row, CTA section and row, warp ...) above a section that belongs to a warp or lane."""
        path = []
        while s.link and s.link < len(self.sections) and len(path) < 8:
            path.append((s.link, s.info))
            s = self.sections[s.link]
        return {self.sections[section].type: (self.sections[section], row) for section, row in path}

    def is_ours(self, place):
        if CTA not in place or SM not in place:
            return False
        cta, row = place[CTA]
        return (place[SM][0].info, cta.get(row, 0, "Q")) in self.ids

    def drop_strangers(self):
        """Registers and parameters of other people's kernels hold other people's data."""
        for i, s in self.each(*OF_LANE, *OF_WARP):
            if not self.is_ours(self.place(s)):
                self.drop.add(i)
        for i, s in self.each(PARAMS):
            if (s.link, s.info) not in self.grids:
                self.drop.add(i)

    def rank(self, place, lane=None):
        """What says most about the fault comes first."""
        if not self.is_ours(place):
            return 4
        if lane is not None and LANE in place and place[LANE][0].get(lane, 32, "I"):
            return 0
        warp, row = place[WARP]
        sm, sm_row = place[SM]
        if warp.get(row, 24, "I") or warp.get(row, 20, "I"):
            return 1
        return 2 if sm.get(sm_row, 8, "I") else 3

    def shrink(self):
        ranked = sorted((self.rank(self.place(s)), i) for i, s in self.each(LANE))
        self.drop |= {i for _, i in ranked[self.args.warps:]}
        self.drop |= {i for i, s in self.each(*OF_LANE) if s.link in self.drop}
        lanes = {}
        for i, s in self.each(*OF_LANE):
            lanes.setdefault((s.link, s.info), []).append(i)
        order = sorted(lanes, key=lambda k: (self.rank(self.place(self.sections[lanes[k][0]]), k[1]), k))
        for key in order[self.args.lanes:]:
            self.drop |= set(lanes[key])
        self.drop_empty()

    def drop_empty(self):
        used = {s.link for i, s in enumerate(self.sections) if i not in self.drop}
        self.drop |= {i for i, s in enumerate(self.sections) if not s.data and i not in used}

    def blank_strings(self):
        for _, s in self.each(STRTAB):
            keep = bytearray(len(s.data))
            for _, table in self.each(*STRINGS):
                for row in range(table.rows()):
                    for field in STRINGS[table.type]:
                        at = table.get(row, field, "Q")
                        text = text_at(s.data, at)
                        if "/" not in text and "@" not in text:
                            keep[at:at + len(text)] = text.encode()
            s.data = bytes(keep)

    def renumber(self):
        kept = [i for i in range(len(self.sections)) if i not in self.drop]
        number = {old: new + 1 for new, old in enumerate(kept)}
        for i in kept:
            self.sections[i].link = number.get(self.sections[i].link, 0)
        return [self.sections[i] for i in kept]


# ---- files --------------------------------------------------------------------------------------------------

def read(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    return lzma.decompress(data) if data[:6] == b"\xfd7zXZ\0" else data


def write(path, data):
    if path.endswith(".gz"):
        data = gzip.compress(data, 9, mtime=0)
    elif path.endswith(".xz"):
        data = lzma.compress(data, preset=9)
    with open(path, "wb") as f:
        f.write(data)
    return len(data)


def scrub(source, target, keep_kernel=(), allow=(), small=False, lanes=64, warps=64):
    """For programs: the same as the command. Returns the Scrubber and the size of the file written."""
    args = argparse.Namespace(keep_kernel=list(keep_kernel), allow=list(allow), small=small, lanes=lanes, warps=warps)
    scrubber = Scrubber(read(source), args)
    data = scrubber.run()
    if keep_kernel and not scrubber.images:
        raise Refused("no image holds " + " or ".join(keep_kernel))
    return scrubber, write(target, data)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("source")
    p.add_argument("target")
    p.add_argument("--keep-kernel", action="append", default=[], metavar="NAME", help="keep the image with this kernel")
    p.add_argument("--allow", action="append", default=[], metavar="NAME", help="this function is ours, too")
    p.add_argument("--small", action="store_true", help="drop lanes and registers beyond a handful")
    p.add_argument("--lanes", type=int, default=64, help="with --small: lanes that keep registers")
    p.add_argument("--warps", type=int, default=64, help="with --small: warps that keep lanes")
    a = p.parse_args()
    try:
        s, size = scrub(a.source, a.target, a.keep_kernel, a.allow, a.small, a.lanes, a.warps)
    except Refused as why:
        print(f"scrub: {a.source}: {why}", file=sys.stderr)
        return 1
    except (NotADump, OSError, EOFError, lzma.LZMAError, ValueError, struct.error) as why:
        print(f"scrub: {a.source}: {why}", file=sys.stderr)
        return 2
    print(f"{a.target}: {len(s.sections) - len(s.drop)} of {len(s.sections)} sections, {s.images} image(s), {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
