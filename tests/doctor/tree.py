# SPDX-License-Identifier: Apache-2.0
"""Trees of files for `cuwhy doctor --root`, made from a description. Its lines:

    use NAME                 the lines of parts/NAME
    dir PATH
    file PATH [TEXT]         escapes as in Python: \\n, \\x7f
    link PATH TARGET
    elf PATH [soname=NAME] [needed=NAME,...] [rpath=FOLDERS] [fatbin=HEX]    a shared library
    cut PATH BYTES           what is left of a file
    fill PATH BYTES          as many zeroes
    mode PATH OCTAL          the doctor then runs as an ordinary user
    remove PATH
"""
import os
import shlex
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ".modes"  # left in the scratch folder when modes matter


def elf(soname="", needed="", rpath="", fatbin=None):
    """A shared library for x86-64 with a dynamic section, and a section of GPU code."""
    strings = b"\0"
    dynamic = b""
    for tag, names in ((1, needed.split(",")), (14, [soname]), (15, [rpath])):
        for name in filter(None, names):
            dynamic += struct.pack("<qQ", tag, len(strings))
            strings += name.encode() + b"\0"
    at = 64 + 2 * 56
    size = len(dynamic) + 3 * 16
    dynamic += struct.pack("<qQqQqQ", 5, at + size, 10, len(strings), 0, 0)
    body = dynamic + strings
    code = bytes.fromhex(fatbin) if fatbin is not None else b""
    names = b"\0.shstrtab\0.nv_fatbin\0"
    end = at + len(body)
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, end, len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 11, 1, 2, 0, end + len(names), len(code), 0, 0, 8, 0)
    table = end + len(names) + len(code)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, table, 0, 64, 56, 2, 64, 3, 1)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 4096)
    dyn = struct.pack("<IIQQQQQQ", 2, 4, at, at, at, size, size, 8)
    return header + load + dyn + body + names + code + sections


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)


def make(root, words):
    verb, path, *rest = words
    full = root + path
    if verb == "dir":
        os.makedirs(full, exist_ok=True)
    elif verb == "file":
        write(full, " ".join(rest).encode().decode("unicode_escape").encode("latin-1"))
    elif verb == "link":
        os.makedirs(os.path.dirname(full), exist_ok=True)
        os.symlink(rest[0], full)
    elif verb == "elf":
        write(full, elf(**dict(word.split("=", 1) for word in rest)))
    elif verb == "cut":
        os.truncate(full, int(rest[0]))
    elif verb == "fill":
        write(full, bytes(int(rest[0])))
    elif verb == "remove":
        os.unlink(full)
    elif verb == "mode":
        os.chmod(full, int(rest[0], 8))
        write(os.path.join(os.path.dirname(root), MODES), b"")
    else:
        raise ValueError("'%s' is no word of a tree" % verb)


def lines_of(path):
    with open(path, encoding="utf-8") as text:
        for line in text:
            words = shlex.split(line, comments=True)
            if words and words[0] == "use":
                yield from lines_of(os.path.join(HERE, "parts", words[1]))
            elif words:
                yield words


def build(path, scratch):
    """Makes the tree; the doctor's arguments."""
    root = os.path.join(scratch, "root")
    os.mkdir(root)
    os.chmod(scratch, 0o755)
    for words in lines_of(path):
        make(root, words)
    return ["--root", root]


def wants_ordinary_user(scratch):
    return os.path.exists(os.path.join(scratch, MODES))


def release(scratch):
    """Restores permissions: folders without them cannot be removed."""
    for folder, names, _ in os.walk(scratch):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755)
