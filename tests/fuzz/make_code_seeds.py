#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tests/fuzz/fuzz_code.c, which tests/unit/test_gpu_code.c reads, too: make_code_seeds.py FOLDER."""
import os
import struct
import sys

PTX = """//
.version 8.7
.target sm_80
.address_size 64
.global .align 4 .b8 table[16] = {1, 2, 3, 4};
.const .align 8 .u64 factor;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry scale(
	.param .u64 .ptr .global .align 16 scale_param_0,
	.param .f32 scale_param_1,
	.param .align 8 .b8 scale_param_2[24]
)
.maxntid 256, 1, 1
{
	.shared .align 16 .b8 tile[1024];
	ret;
}
"""


def cubin():
    """One kernel, with two parameters, launch bounds, static shared memory and 40 registers; and one variable."""
    strings = b"\0scale\0table\0"
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    symbols += struct.pack("<IBBHQQ", 1, 0x12, 0x10, 4, 0, 128)
    symbols += struct.pack("<IBBHQQ", 7, 0x11, 0, 8, 0, 8)
    def sized(attribute, *words):
        data = b"".join(words)
        return struct.pack("<BBH", 4, attribute, len(data)) + data
    def param(ordinal, offset, size):
        return sized(0x17, struct.pack("<IHHI", 0, ordinal, offset, size << 18 | 0x1f000))
    info = sized(0x2f, struct.pack("<II", 1, 40)) + sized(0x11, struct.pack("<II", 1, 16))
    own = param(1, 8, 4) + param(0, 0, 8) + struct.pack("<BBH", 3, 0x19, 12) + sized(0x05, struct.pack("<III", 128, 2, 1))
    nobits, progbits, lo = 8, 1, 0x70000000
    sections = [("", 0, b"", 0, 0, 0), (".shstrtab", 3, None, 0, 0, 0), (".strtab", 3, strings, 0, 0, 0),
                (".symtab", 2, symbols, 2, 0, 0), (".text.scale", progbits, bytes(128), 3, 1, 0),
                (".nv.info", lo, info, 3, 0, 0), (".nv.info.scale", lo, own, 3, 4, 0),
                (".nv.shared.scale", nobits, b"", 0, 4, 2048), (".nv.global.init", progbits, b"\1\2\3\4\5\6\7\x08", 0, 0, 0)]
    names, at = b"", {}
    for s in sections:
        at[s[0]] = len(names)
        names += s[0].encode() + b"\0"
    body, headers = b"", b""
    for name, kind, data, link, extra, size in sections:
        data = names if data is None else data
        place = 64 + len(body)
        headers += struct.pack("<IIQQQQIIQQ", at[name], kind, 0, 0, place, size or len(data), link, extra, 8, 24 if kind == 2 else 0)
        body += data + bytes(-len(data) % 8)
    ident = b"\x7fELF\x02\x01\x01" + bytes([0x41, 8]) + bytes(7)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 80 << 8, 64, 0, 0, 64, len(sections), 1)
    return head + body + headers


def lz4(data):
    """One block that repeats nothing."""
    extra = len(data) - 15
    return b"\xf0" + b"\xff" * (extra // 255) + bytes([extra % 255]) + data


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, data in (("small.cubin", cubin()), ("small.ptx", PTX.encode()), ("small.lz4", lz4(cubin()))):
        with open(os.path.join(sys.argv[1], name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
