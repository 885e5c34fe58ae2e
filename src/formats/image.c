/* SPDX-License-Identifier: Apache-2.0
 * Functions and code of a relocated module image.
 */
#include <elf.h>
#include <string.h>

#include "formats/image.h"
#include "base/banned.h"

#define SYMBOLS_MAX	1000000	/* images of PyTorch have a few thousand */

static bool inside(struct bytes b, uint64_t off, uint64_t len)
{
	return b.data && off <= b.len && len <= b.len - off;
}

static bool header_get(struct bytes image, Elf64_Ehdr *h)
{
	if (!inside(image, 0, sizeof(*h)))
		return false;
	memcpy(h, image.data, sizeof(*h));
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_shentsize >= sizeof(Elf64_Shdr);
}

static bool section_get(struct bytes image, const Elf64_Ehdr *h, uint64_t i, Elf64_Shdr *s)
{
	uint64_t at = i * h->e_shentsize;

	if (h->e_shoff > image.len || !inside(image, h->e_shoff + at, sizeof(*s)))
		return false;
	memcpy(s, image.data + h->e_shoff + at, sizeof(*s));
	return true;
}

/* Modules of large libraries have more sections than the header can count. */
static uint64_t section_count(struct bytes image, const Elf64_Ehdr *h)
{
	Elf64_Shdr zero;

	if (h->e_shnum)
		return h->e_shnum;
	if (!section_get(image, h, 0, &zero))
		return 0;
	return zero.sh_size < SYMBOLS_MAX ? zero.sh_size : 0;
}

static const char *name_get(struct bytes image, const Elf64_Shdr *strings, uint32_t off)
{
	const uint8_t *p;

	if (!inside(image, strings->sh_offset, strings->sh_size) || off >= strings->sh_size)
		return NULL;
	p = image.data + strings->sh_offset + off;
	return memchr(p, '\0', strings->sh_size - off) ? (const char *)p : NULL;
}

/* The symbol table. One is enough: a hostile file could name the same one a million times. */
struct symbols {
	struct bytes image;
	Elf64_Shdr table, strings;
};

static bool symbols_open(struct symbols *all, struct bytes image, const Elf64_Ehdr *h)
{
	uint64_t i, n = section_count(image, h);

	all->image = image;
	for (i = 1; i < n && section_get(image, h, i, &all->table); i++)
		if (all->table.sh_type == SHT_SYMTAB)
			return all->table.sh_entsize >= sizeof(Elf64_Sym) &&
			       inside(image, all->table.sh_offset, all->table.sh_size) &&
			       section_get(image, h, all->table.sh_link, &all->strings);
	return false;
}

static bool symbols_get(const struct symbols *all, uint64_t i, Elf64_Sym *sym)
{
	if (i >= all->table.sh_size / all->table.sh_entsize || i >= SYMBOLS_MAX)
		return false;
	memcpy(sym, all->image.data + all->table.sh_offset + i * all->table.sh_entsize, sizeof(*sym));
	return true;
}

struct query {
	uint64_t pc;
	bool entry;
	struct image_function *best;
	bool found;
};

/* Of functions that hold the address the innermost is wanted, which is the one that starts last. */
static void offer(struct query *q, const Elf64_Sym *sym, const char *name)
{
	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !name || !name[0] || sym->st_shndx == SHN_UNDEF)
		return;
	if (q->entry ? sym->st_value != q->pc :
	    q->pc < sym->st_value || q->pc - sym->st_value >= sym->st_size)
		return;
	if (q->found && (q->entry ? sym->st_size <= q->best->size : sym->st_value <= q->best->start))
		return;
	*q->best = (struct image_function){name, sym->st_value, sym->st_size};
	q->found = true;
}

static bool search(struct bytes image, struct query *q)
{
	struct symbols all;
	Elf64_Sym sym;
	Elf64_Ehdr h;
	uint64_t i;

	if (!header_get(image, &h) || !symbols_open(&all, image, &h))
		return false;
	for (i = 0; symbols_get(&all, i, &sym); i++)
		if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC)
			offer(q, &sym, name_get(image, &all.strings, sym.st_name));
	return q->found;
}

bool image_find(struct bytes image, uint64_t pc, struct image_function *f)
{
	struct query q = {.pc = pc, .best = f};

	return search(image, &q);
}

bool image_entry(struct bytes image, uint64_t entry, struct image_function *f)
{
	struct query q = {.pc = entry, .entry = true, .best = f};

	return search(image, &q);
}

const uint8_t *image_code(struct bytes image, uint64_t pc, uint64_t len)
{
	Elf64_Ehdr h;
	Elf64_Shdr s;
	uint64_t i, n, at;

	if (!header_get(image, &h))
		return NULL;
	n = section_count(image, &h);
	for (i = 1; i < n && section_get(image, &h, i, &s); i++) {
		if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR) || pc < s.sh_addr)
			continue;
		at = pc - s.sh_addr;
		if (at < s.sh_size && len <= s.sh_size - at && inside(image, s.sh_offset, s.sh_size))
			return image.data + s.sh_offset + at;
	}
	return NULL;
}

/* --- data ------------------------------------------------------------------------------------- */

/* Looks at no more bytes than the name has: a hostile file may have very long ones. */
static bool is_named(struct bytes image, const Elf64_Shdr *strings, uint32_t off, const char *name)
{
	size_t len = strlen(name) + 1;

	return inside(image, strings->sh_offset, strings->sh_size) && off < strings->sh_size &&
	       len <= strings->sh_size - off && memcmp(image.data + strings->sh_offset + off, name, len) == 0;
}

/* The number of the section of this name, 0 = none. */
static uint64_t section_named(struct bytes image, const Elf64_Ehdr *h, const char *name, Elf64_Shdr *s)
{
	uint64_t i, n = section_count(image, h), at = h->e_shstrndx;
	Elf64_Shdr names;

	if (at == SHN_XINDEX && section_get(image, h, 0, &names))
		at = names.sh_link;
	if (!section_get(image, h, at, &names))
		return 0;
	for (i = 1; i < n && section_get(image, h, i, s); i++)
		if (is_named(image, &names, s->sh_name, name))
			return i;
	return 0;
}

bool image_section(struct bytes image, const char *name, struct bytes *bytes)
{
	Elf64_Ehdr h;
	Elf64_Shdr s;

	*bytes = (struct bytes){.data = NULL};
	if (!header_get(image, &h) || !section_named(image, &h, name, &s) || s.sh_type == SHT_NOBITS ||
	    !inside(image, s.sh_offset, s.sh_size))
		return false;
	*bytes = (struct bytes){image.data + s.sh_offset, (size_t)s.sh_size};
	return true;
}

void image_objects(struct bytes image, const char *section, image_object_fn *fn, void *arg)
{
	struct image_object o;
	struct symbols all;
	uint64_t i, number;
	Elf64_Shdr s;
	Elf64_Sym sym;
	Elf64_Ehdr h;

	if (!header_get(image, &h))
		return;
	number = section_named(image, &h, section, &s);
	/* sections beyond what a symbol can name have their numbers elsewhere */
	if (!number || number >= SHN_LORESERVE || !symbols_open(&all, image, &h))
		return;
	for (i = 0; symbols_get(&all, i, &sym); i++) {
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx != number)
			continue;
		o = (struct image_object){.value = sym.st_value, .size = sym.st_size};
		if (inside(image, all.strings.sh_offset, all.strings.sh_size) && sym.st_name < all.strings.sh_size)
			o.name = (const char *)image.data + all.strings.sh_offset + sym.st_name;
		o.name_max = o.name ? all.strings.sh_size - sym.st_name : 0;
		if (fn(arg, &o))
			return;
	}
}
