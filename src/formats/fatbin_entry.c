/* SPDX-License-Identifier: Apache-2.0
 * The headers of one fat binary and of its entries (see fatbin_entry.h).
 */
#include "formats/fatbin_entry.h"

#define ENTRY_HEADER	 64u
#define ENTRY_HEADER_MAX 65536u	/* names and options are in it */

#define FLAG_LZ4    0x2000ull
#define FLAG_ZSTD   0x8000ull
#define FLAG_ARCH   0x100000ull	/* "a" */
#define FLAG_FAMILY 0x200000ull	/* "f" */

struct binary_header {
	uint32_t magic;
	uint16_t version, header;
	uint64_t size;
};

struct entry_header {
	uint16_t kind, version;
	uint32_t header;
	uint64_t size;
	uint32_t packed, options;
	uint16_t minor, major;
	uint32_t arch, name, name_len;
	uint64_t flags, reserved, whole;
};

bool fatbin_binary_at(const struct elf_source *s, uint64_t at, uint64_t end, struct fatbin_binary *b)
{
	struct binary_header h;

	if (at > end || end - at < sizeof(h) || !elf_get(s, at, &h, sizeof(h)) || h.magic != FATBIN_MAGIC ||
	    h.version != 1 || h.header < FATBIN_HEADER || h.header % 8)
		return false;
	*b = (struct fatbin_binary){at + h.header, h.size};
	return true;
}

static enum fatbin_kind entry_kind(uint16_t kind)
{
	switch (kind) {
	case 1:
		return FATBIN_PTX;
	case 2:
		return FATBIN_SASS;
	case 8:
		return FATBIN_LTO;
	default:
		return FATBIN_OTHER;
	}
}

static enum fatbin_packing entry_packing(const struct entry_header *h)
{
	if (!h->packed || !h->whole)
		return FATBIN_PLAIN;
	return h->flags & FLAG_ZSTD ? FATBIN_ZSTD : h->flags & FLAG_LZ4 ? FATBIN_LZ4 : FATBIN_PLAIN;
}

bool fatbin_entry_at(const struct elf_source *s, uint64_t at, uint64_t end, struct fatbin_entry *e)
{
	struct entry_header h;

	if (at > end || end - at < ENTRY_HEADER || !elf_get(s, at, &h, sizeof(h)) || h.header < ENTRY_HEADER ||
	    h.header % 8 || h.header > ENTRY_HEADER_MAX || h.header > end - at || h.size > end - at - h.header)
		return false;
	*e = (struct fatbin_entry){.kind = entry_kind(h.kind),
				   .number = h.kind,
				   .arch = h.arch,
				   .suffix = h.flags & FLAG_ARCH ? 'a' : h.flags & FLAG_FAMILY ? 'f' : '\0',
				   .packing = entry_packing(&h),
				   .at = at + h.header,
				   .len = h.size,
				   .whole = h.size,
				   .next = at + h.header + h.size};
	if (e->kind == FATBIN_PTX && h.major < 100 && h.minor < 10)
		e->ptx = h.major * 10 + h.minor;
	if (e->packing == FATBIN_PLAIN)
		return true;
	/* behind what is packed is padding */
	if (h.packed < e->len)
		e->len = h.packed;
	e->whole = h.whole;
	return true;
}
