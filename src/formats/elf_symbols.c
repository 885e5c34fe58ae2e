/* SPDX-License-Identifier: Apache-2.0
 * Names that an ELF file exports and needs, from its dynamic symbol table.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/elf_file.h"
#include "base/banned.h"

#define NAME_MAX_LEN	4096
#define CHAIN_MAX	4096	/* steps in one bucket; real tables have a few */
#define STEPS_MAX	1000000	/* in all look-ups of one file; then everything counts as exported, which accuses nobody */
#define TABLE_MAX	(64u << 20)

struct gnu_header { uint32_t n_buckets, first, bloom_words, bloom_shift; };

static bool word_at(const struct elf_file *f, uint64_t vaddr, void *to, size_t size)
{
	return elf_bytes(f, vaddr, to, size) == size;
}

static bool is_defined(const Elf64_Sym *s)
{
	unsigned bind = ELF64_ST_BIND(s->st_info);

	return s->st_shndx != SHN_UNDEF && (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE);
}

static bool symbol_is(const struct elf_file *f, uint32_t index, const char *name, size_t len)
{
	char text[NAME_MAX_LEN];
	Elf64_Sym s;

	return len < sizeof(text) && word_at(f, f->symtab + (uint64_t)index * sizeof(s), &s, sizeof(s)) && is_defined(&s) &&
	       s.st_name < f->strsize && elf_bytes(f, f->strtab + s.st_name, text, len + 1) == len + 1 &&
	       memcmp(text, name, len + 1) == 0;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool bloom_says_no(const struct elf_file *f, const struct gnu_header *g, uint32_t hash)
{
	uint64_t word, mask;

	if (g->bloom_words == 0 ||
	    !word_at(f, f->gnu_hash + sizeof(*g) + 8ull * ((hash / 64) & (g->bloom_words - 1)), &word, sizeof(word)))
		return false;
	mask = 1ull << (hash % 64) | 1ull << ((hash >> (g->bloom_shift & 31)) % 64);
	return (word & mask) != mask;
}

static bool gnu_exports(struct elf_file *f, const char *name)
{
	uint32_t hash = gnu_hash_of(name), i, link;
	size_t len = strlen(name);
	struct gnu_header g;
	uint64_t buckets;

	if (!word_at(f, f->gnu_hash, &g, sizeof(g)) || g.n_buckets == 0 || bloom_says_no(f, &g, hash))
		return false;
	buckets = f->gnu_hash + sizeof(g) + 8ull * g.bloom_words;
	if (!word_at(f, buckets + 4ull * (hash % g.n_buckets), &i, sizeof(i)) || i < g.first)
		return false;
	for (int step = 0; step < CHAIN_MAX; step++, i++) {
		if (++f->steps > STEPS_MAX)
			return true;
		if (!word_at(f, buckets + 4ull * g.n_buckets + 4ull * (i - g.first), &link, sizeof(link)))
			return false;
		if ((link | 1) == (hash | 1) && symbol_is(f, i, name, len))
			return true;
		if (link & 1)
			return false;
	}
	return false;
}

static bool sysv_exports(struct elf_file *f, const char *name)
{
	uint32_t h = 0, head[2], i;

	for (const char *p = name; *p; p++) {
		h = (h << 4) + (unsigned char)*p;
		h ^= (h >> 24) & 0xf0;
	}
	h &= 0x0fffffff;
	if (!word_at(f, f->sysv_hash, head, sizeof(head)) || head[0] == 0 ||
	    !word_at(f, f->sysv_hash + 8 + 4ull * (h % head[0]), &i, sizeof(i)))
		return false;
	for (int step = 0; step < CHAIN_MAX && i; step++) {
		if (++f->steps > STEPS_MAX)
			return true;
		if (symbol_is(f, i, name, strlen(name)))
			return true;
		if (!word_at(f, f->sysv_hash + 8 + 4ull * head[0] + 4ull * i, &i, sizeof(i)))
			return false;
	}
	return false;
}

bool elf_exports(struct elf_file *f, const char *symbol)
{
	if (!f->symtab || !f->strtab)
		return false;
	return f->gnu_hash ? gnu_exports(f, symbol) : f->sysv_hash ? sysv_exports(f, symbol) : false;
}

/* The last symbol of the highest chain is the last of the table. */
static size_t count_by_gnu_hash(const struct elf_file *f, const struct gnu_header *g)
{
	uint64_t buckets = f->gnu_hash + sizeof(*g) + 8ull * g->bloom_words;
	uint32_t highest = 0, link, *list;
	size_t n;

	if (g->n_buckets == 0 || g->n_buckets > f->size / 4 || g->n_buckets > TABLE_MAX / 4)
		return 0;
	list = xcalloc(g->n_buckets, sizeof(*list));
	n = elf_bytes(f, buckets, list, g->n_buckets * sizeof(*list)) / sizeof(*list);
	for (size_t i = 0; i < n; i++)
		highest = list[i] > highest ? list[i] : highest;
	free(list);
	if (highest < g->first)
		return g->first;
	buckets += 4ull * g->n_buckets;
	for (int step = 0; step < CHAIN_MAX; step++, highest++)
		if (!word_at(f, buckets + 4ull * (highest - g->first), &link, sizeof(link)) || (link & 1))
			break;
	return (size_t)highest + 1;
}

/* Nothing in a loaded image says how many symbols there are, except for the hash tables. Undefined ones come before
 * the first that the GNU table knows. */
static size_t count_symbols(const struct elf_file *f, bool undefined)
{
	struct gnu_header g;
	uint32_t head[2];

	if (f->sysv_hash && word_at(f, f->sysv_hash, head, sizeof(head)))
		return head[1];
	if (!f->gnu_hash || !word_at(f, f->gnu_hash, &g, sizeof(g)))
		return 0;
	return undefined ? g.first : count_by_gnu_hash(f, &g);
}

static char *read_strings(const struct elf_file *f, size_t *size)
{
	char *text;

	if (f->strsize == 0 || f->strsize > TABLE_MAX || f->strsize > f->size)
		return NULL;
	text = xmalloc((size_t)f->strsize + 1);
	*size = elf_bytes(f, f->strtab, text, (size_t)f->strsize);
	text[*size] = '\0';
	return text;
}

bool elf_symbols(const struct elf_file *f, bool undefined, size_t max,
		 bool (*each)(void *arg, const char *name, bool weak), void *arg)
{
	size_t n = f->symtab && f->strtab ? count_symbols(f, undefined) : 0, strings;
	char *text;
	Elf64_Sym *sym;

	n = n < max ? n : max;
	if (n == 0 || n > f->size / sizeof(*sym))
		return false;
	text = read_strings(f, &strings);
	if (!text)
		return false;
	sym = xcalloc(n, sizeof(*sym));
	n = elf_bytes(f, f->symtab, sym, n * sizeof(*sym)) / sizeof(*sym);
	for (size_t i = 1; i < n; i++) {
		bool weak = ELF64_ST_BIND(sym[i].st_info) == STB_WEAK;

		if (sym[i].st_name >= strings || !text[sym[i].st_name] || is_defined(&sym[i]) == undefined)
			continue;
		if (!each(arg, text + sym[i].st_name, weak))
			break;
	}
	free(sym);
	free(text);
	return true;
}
