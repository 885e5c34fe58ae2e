# SPDX-License-Identifier: Apache-2.0
"""Reads the names that a 64-bit ELF library defines, and those that it looks up when it is loaded."""
import mmap
import struct

DYNSYM, RELA, DYNAMIC, VERNEED, VERSYM = 11, 4, 6, 0x6ffffffe, 0x6fffffff
NEEDED, WEAK = 1, 2
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


def texts(data, off):
	return lambda at: data[off + at:data.find(b"\0", off + at)].decode("ascii", "replace")


def wanted_versions(data, table):
	"""{index in the table of versions: (library, version)} of what other libraries must define."""
	found = {}
	for kind, off, _, link in table:
		if kind != VERNEED:
			continue
		text, at = texts(data, table[link][1]), off
		while True:
			_, count, name, first, following = struct.unpack_from("<HHIII", data, at)
			entry = at + first
			for _ in range(count):
				_, _, index, version, step = struct.unpack_from("<IHHII", data, entry)
				found[index] = (text(name), text(version))
				entry += step
			if not following:
				break
			at += following
	return found


def imports(data):
	"""Names that must come from elsewhere: {(library or None, version or None, name)}; those that may be missing are left out."""
	table = list(sections(data))
	_, off, length, link = next(s for s in table if s[0] == DYNSYM)
	text, wanted = texts(data, table[link][1]), wanted_versions(data, table)
	versions = next((s for s in table if s[0] == VERSYM), None)
	found = set()
	for i, (name, info, _, section, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", data[off:off + length])):
		if section or not name or info >> 4 == WEAK:
			continue
		index = struct.unpack_from("<H", data, versions[1] + 2 * i)[0] & 0x7fff if versions else 0
		found.add((*wanted.get(index, (None, None)), text(name)))
	return found


def needed(data):
	"""The libraries that the loader loads for it."""
	table = list(sections(data))
	_, off, length, link = next(s for s in table if s[0] == DYNAMIC)
	text = texts(data, table[link][1])
	return [text(value) for tag, value in struct.iter_unpack("<QQ", data[off:off + length]) if tag == NEEDED]


def mapped(path):
	with open(path, "rb") as f:
		return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)


def read_file(path):
	with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
		return read(data)
