#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which kernels are compiled from a source file that has assertions: writes kb/assert_kernels.def from PyTorch's library.

    tools/assert_kernels.py path/to/libtorch_cuda.so > kb/assert_kernels.def

A source file is a fat binary of its own, whose data has the names of the files that it asserts in. Kernels in an anonymous namespace have
their file in their own name; for the others, this lists the functions in their names that no other source file has.
"""
import collections
import ctypes
import mmap
import os
import re
import struct
import sys

ARCH = 90
MAGIC = struct.pack("<I", 0xba55ed50)
HEAD = """/* SPDX-License-Identifier: Apache-2.0
 * Which source file of PyTorch's a kernel is compiled from, for those files that have assertions: the line of a failed one begins with the file.
 * Written by tools/assert_kernels.py from libtorch_cuda.so of PyTorch %s.
 *
 *   COMPILED(file, function)     a kernel with this function in its name is from that file, and from no other
 */
#ifdef COMPILED
"""


def unpack(data, flags, whole):
    if flags & 0x8000:
        out, zstd = ctypes.create_string_buffer(whole), ctypes.CDLL("libzstd.so.1")
        zstd.ZSTD_decompress.restype = ctypes.c_size_t
        return out.raw if zstd.ZSTD_decompress(out, ctypes.c_size_t(whole), data, ctypes.c_size_t(len(data))) == whole else b""
    if flags & 0x2000:
        out = ctypes.create_string_buffer(whole)
        ctypes.CDLL("liblz4.so.1").LZ4_decompress_safe(data, out, len(data), whole)
        return out.raw
    return data


def cubins(path):
    """The machine code of every fat binary, for one GPU."""
    with open(path, "rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
    at = data.find(MAGIC)
    while at >= 0:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header, at + header + size
        while header == 16 and entry + 64 <= end:
            kind, _, head, stored, packed = struct.unpack_from("<HHIQI", data, entry)
            arch, flags, whole = (struct.unpack_from("<I", data, entry + 28) + struct.unpack_from("<Q", data, entry + 40)
                                  + struct.unpack_from("<Q", data, entry + 56))
            if kind == 2 and arch == ARCH:
                yield unpack(data[entry + head:entry + head + (packed or stored)], flags, whole)
            entry += head + stored
        at = data.find(MAGIC, max(end, at + 4) if header == 16 else at + 4)


def kernels_and_data(image):
    table, size, count, names = struct.unpack_from("<Q", image, 40) + struct.unpack_from("<HHH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + size * i) for i in range(count)]
    start, kernels, data = sections[names][4], set(), b""
    for s in sections:
        name = image[start + s[0]:image.index(b"\0", start + s[0])].decode()
        if name.startswith(".text."):
            kernels.add(name[6:])
        elif name.startswith(".nv.global.init"):
            data += image[s[4]:s[4] + s[5]]
    return kernels, data


def functions(mangled):
    """Source names in a mangled name, in their order."""
    found, at = [], 2
    while at < len(mangled):
        number = re.compile(r"(?<![ST\d])(?<!L[a-z])[1-9]\d*").match(mangled, at)     # not one of a substitution or a literal
        if number and re.match(r"[A-Za-z_]\w*", mangled[number.end():number.end() + int(number.group())]):
            end = number.end() + int(number.group())
            found.append(mangled[number.end():end])
            at = end
        else:
            at += 1
    return found


def main():
    units = [kernels_and_data(image) for image in cubins(sys.argv[1])]
    used = collections.Counter()
    for kernels, _ in units:
        used.update({f for k in kernels for f in functions(k)})
    rows = set()
    for kernels, data in units:
        files = {os.path.basename(f.decode()) for f in re.findall(rb"[\x20-\x7e]+\.cu(?=\0)", data)}
        anonymous = [k for k in kernels if "_GLOBAL__N_" in k]
        left = {k: [f for f in functions(k) if used[f] == 1] for k in kernels if k not in anonymous}
        while any(left.values()):
            best = min(collections.Counter(f for fs in left.values() for f in set(fs)).items(), key=lambda x: (-x[1], -len(x[0]), x[0]))[0]
            rows |= {(file, best) for file in files}
            left = {k: fs for k, fs in left.items() if best not in fs}
    version = re.search(r"torch/(\d+\.\d+\.\d+)", sys.argv[1])
    sys.stdout.write(HEAD % (version.group(1) if version else "of an unknown version"))
    for file, function in sorted(rows):
        sys.stdout.write('COMPILED("%s", "%s")\n' % (file, function))
    sys.stdout.write("#undef COMPILED\n#endif\n")


if __name__ == "__main__":
    main()
