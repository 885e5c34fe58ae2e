# SPDX-License-Identifier: Apache-2.0
"""Reads the names that a 64-bit ELF library defines, and those that it looks up when it is loaded."""
import mmap
import struct

DYNSYM, RELA = 11, 4
LOOKED_UP = (1, 6, 7)		# R_X86_64_64, GLOB_DAT, JUMP_SLOT: by name, so a preloaded definition comes first


def sections(data):
	if data[:6] != b"\x7fELF\x02\x01":
		raise ValueError("not a 64-bit little-endian ELF file")
	start, = struct.unpack_from("<Q", data, 40)
	size, count = struct.unpack_from("<HH", data, 58)
	for i in range(count):
		_, kind, _, _, off, length, link = struct.unpack_from("<IIQQQQI", data, start + i * size)
		yield kind, off, length, link


def read(data):
	"""(defined names, names looked up)"""
	table = list(sections(data))
	at = next((s for s in table if s[0] == DYNSYM), None)
	if not at:
		raise ValueError("no table of dynamic symbols")
	_, off, length, link = at
	texts = table[link][1]
	names, defined = [], set()
	for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[off:off + length]):
		start = texts + name
		names.append(data[start:data.find(b"\0", start)].decode("ascii", "replace"))
		if section and name:
			defined.add(names[-1])
	used = set()
	for kind, off, length, link in table:
		if kind != RELA or table[link][0] != DYNSYM:
			continue
		for _, info, _ in struct.iter_unpack("<QQq", data[off:off + length]):
			if info >> 32 and info & 0xffffffff in LOOKED_UP:
				used.add(names[info >> 32])
	return defined, used


def read_file(path):
	with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
		return read(data)
