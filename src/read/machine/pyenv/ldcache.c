/* SPDX-License-Identifier: Apache-2.0
 * /etc/ld.so.cache, in the formats of glibc: the old one, the new one, and the new one after the old.
 */
#include "read/machine/pyenv/loader_session.h"

#include <elf.h>
#include <string.h>

#include "base/str.h"

#define OLD_MAGIC	"ld.so-1.7.0"
#define NEW_MAGIC	"glibc-ld.so.cache1.1"
#define OLD_HEADER	16u
#define OLD_ENTRY	12u
#define NEW_HEADER	48u
#define NEW_ENTRY	24u
#define EXT_MAGIC	0xeaa42174u
#define EXT_HWCAPS	1u
#define HWCAP_EXT	(1ull << 62)	/* the low half is an index into the names of glibc-hwcaps folders */
#define ISA_LEVEL	0x3ffu		/* in the high half: what the library itself was built for */
#define HWCAPS_MAX	64u

static bool cache_u32(const struct ldcache *c, size_t at, uint32_t *v)
{
	if (at > c->size || c->size - at < sizeof(*v))
		return false;
	memcpy(v, c->data + at, sizeof(*v));
	return true;
}

/* A text that ends inside the file. */
static const char *cache_text(const struct ldcache *c, uint64_t at)
{
	return at < c->texts_end ? c->data + at : NULL;
}

static void cache_find_hwcaps(struct ldcache *c, size_t header)
{
	uint32_t ext, magic, n, tag, at, size;

	if (!cache_u32(c, header + 32, &ext) || ext == 0)
		return;
	if (!cache_u32(c, c->base + ext, &magic) || magic != EXT_MAGIC || !cache_u32(c, c->base + ext + 4, &n))
		return;
	for (uint32_t i = 0; i < n && i < 16; i++) {
		size_t s = c->base + ext + 8 + 16u * i;

		if (!cache_u32(c, s, &tag) || !cache_u32(c, s + 8, &at) || !cache_u32(c, s + 12, &size))
			return;
		if (tag != EXT_HWCAPS)
			continue;
		c->hwcaps = c->base + at;
		c->n_hwcaps = size / 4 < HWCAPS_MAX ? size / 4 : HWCAPS_MAX;
	}
}

static bool cache_parse_new(struct ldcache *c, size_t header)
{
	uint32_t n;

	if (header > c->size || c->size - header < NEW_HEADER ||
	    memcmp(c->data + header, NEW_MAGIC, strlen(NEW_MAGIC)) != 0 || !cache_u32(c, header + 20, &n))
		return false;
	c->base = header;
	c->entries = header + NEW_HEADER;
	c->entry_size = NEW_ENTRY;
	c->n_entries = (c->size - c->entries) / NEW_ENTRY;
	if (n < c->n_entries)
		c->n_entries = n;
	cache_find_hwcaps(c, header);
	return true;
}

static bool cache_parse_old(struct ldcache *c)
{
	uint32_t n;
	size_t end;

	if (c->size < OLD_HEADER || memcmp(c->data, OLD_MAGIC, strlen(OLD_MAGIC)) != 0 || !cache_u32(c, 12, &n))
		return false;
	c->entries = OLD_HEADER;
	c->entry_size = OLD_ENTRY;
	c->n_entries = (c->size - OLD_HEADER) / OLD_ENTRY;
	if (n > c->n_entries)
		return true;
	c->n_entries = n;
	end = OLD_HEADER + (size_t)n * OLD_ENTRY;
	c->base = end;		/* texts of the old format follow its entries */
	cache_parse_new(c, (end + 7) & ~(size_t)7);
	return true;
}

void ldcache_parse(struct ldcache *c, const void *data, size_t size)
{
	const char *last = size ? memrchr(data, '\0', size) : NULL;

	*c = (struct ldcache){.data = data, .size = size};
	c->texts_end = last ? (size_t)(last - c->data) + 1 : 0;
	if (size == 0)
		c->reason = "empty file";
	else if (!cache_parse_new(c, 0) && !cache_parse_old(c))
		c->reason = "not a cache of glibc";
}

/* Flags of libraries for this machine: 3 is "ELF for glibc 2", the second byte names the ABI. */
static bool flags_fit(uint32_t flags, uint16_t machine)
{
	if (machine == EM_X86_64)
		return flags == 0x0303;
	if (machine == EM_AARCH64)
		return flags == 0x0a03;
	return (flags & 0xff) == 3;
}

/* 0: for every CPU, 2 to 4: for that x86-64 level, -1: not for this CPU. */
static int entry_level(const struct ldcache *c, size_t entry, int level)
{
	uint32_t index, high, at;
	const char *name;
	int n;

	if (c->entry_size == OLD_ENTRY || !cache_u32(c, entry + 16, &index) || !cache_u32(c, entry + 20, &high))
		return 0;
	if (index == 0 && high == 0)
		return 0;
	if ((high & ~ISA_LEVEL) != (uint32_t)(HWCAP_EXT >> 32) || index >= c->n_hwcaps ||
	    !cache_u32(c, c->hwcaps + 4u * index, &at))
		return -1;
	name = cache_text(c, (uint64_t)c->base + at);
	if (!name || !str_starts(name, "x86-64-v") || name[8] < '2' || name[8] > '4' || name[9])
		return -1;
	n = name[8] - '0';
	return n <= level ? n : -1;
}

const char *ldcache_find(const struct ldcache *c, const char *soname, uint16_t machine, int level)
{
	const char *best = NULL, *key, *path;
	uint32_t flags, k, v;
	int best_level = -1, l;

	for (size_t i = 0; i < c->n_entries; i++) {
		size_t e = c->entries + i * c->entry_size;

		if (!cache_u32(c, e, &flags) || !cache_u32(c, e + 4, &k) || !cache_u32(c, e + 8, &v) ||
		    !flags_fit(flags, machine))
			continue;
		key = cache_text(c, (uint64_t)c->base + k);
		if (!key || strcmp(key, soname) != 0)
			continue;
		path = cache_text(c, (uint64_t)c->base + v);
		l = entry_level(c, e, level);
		if (path && path[0] == '/' && l > best_level) {
			best = path;
			best_level = l;
		}
	}
	return best;
}
