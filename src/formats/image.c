/* SPDX-License-Identifier: Apache-2.0
 * Functions, code and data of a relocated module image.
 */
#include "formats/image.h"

#include <stdio.h>
#include <string.h>

#include "formats/elf_sections.h"

/* Bounds on what a malicious file can make us look at; PyTorch's images have a few thousand of each. */
#define SECTIONS_MAX	1000000
#define SYMBOLS_MAX	1000000

static bool image_open(struct bytes image, struct elf_sections *all)
{
	struct elf_source file = elf_in_memory(image);
	Elf64_Ehdr h;

	return elf_header(&file, &h) && elf_sections_open(all, file, &h) && all->n <= SECTIONS_MAX;
}

/* The symbol table. One is enough: a hostile file could name the same one a million times. */
struct symbols {
	struct bytes table, names;
	uint64_t stride;
};

static bool symbols_open(struct symbols *to, const struct elf_sections *all)
{
	Elf64_Shdr table, names;
	uint64_t i;

	for (i = 1; elf_section(all, i, &table); i++) {
		if (table.sh_type != SHT_SYMTAB)
			continue;
		if (table.sh_entsize < sizeof(Elf64_Sym) || !elf_section(all, table.sh_link, &names))
			return false;
		*to = (struct symbols){elf_section_bytes(all, &table), elf_section_bytes(all, &names),
				       table.sh_entsize};
		return to->table.data;
	}
	return false;
}

static bool symbols_get(const struct symbols *all, uint64_t i, Elf64_Sym *sym)
{
	if (i >= all->table.len / all->stride || i >= SYMBOLS_MAX)
		return false;
	memcpy(sym, all->table.data + i * all->stride, sizeof(*sym));
	return true;
}

/* A terminated name; NULL when it has no end. */
static const char *symbol_name(const struct symbols *all, const Elf64_Sym *sym)
{
	const uint8_t *p;

	if (!all->names.data || sym->st_name >= all->names.len)
		return NULL;
	p = all->names.data + sym->st_name;
	return memchr(p, '\0', all->names.len - sym->st_name) ? (const char *)p : NULL;
}

struct function_query {
	uint64_t pc;
	const char *name;	/* instead of an address */
	bool entry;
	struct image_function *best;
	bool found;
};

/* Of the functions that contain the address, we want the innermost: the one that starts last. */
static void function_offer(struct function_query *q, const Elf64_Sym *sym, const char *name)
{
	if (!name || !name[0] || sym->st_shndx == SHN_UNDEF)
		return;
	if (q->name    ? strcmp(name, q->name) != 0
	    : q->entry ? sym->st_value != q->pc
		       : q->pc < sym->st_value || q->pc - sym->st_value >= sym->st_size)
		return;
	if (q->found && (q->name || q->entry ? sym->st_size <= q->best->size : sym->st_value <= q->best->start))
		return;
	*q->best = (struct image_function){name, sym->st_value, sym->st_size};
	q->found = true;
}

static bool function_search(struct bytes image, struct function_query *q)
{
	struct elf_sections all;
	struct symbols symbols;
	Elf64_Sym sym;
	uint64_t i;

	if (!image_open(image, &all) || !symbols_open(&symbols, &all))
		return false;
	for (i = 0; symbols_get(&symbols, i, &sym); i++)
		if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC)
			function_offer(q, &sym, symbol_name(&symbols, &sym));
	return q->found;
}

bool image_find(struct bytes image, uint64_t pc, struct image_function *f)
{
	struct function_query q = {.pc = pc, .best = f};

	return function_search(image, &q);
}

bool image_entry(struct bytes image, uint64_t entry, struct image_function *f)
{
	struct function_query q = {.pc = entry, .entry = true, .best = f};

	return function_search(image, &q);
}

bool image_named(struct bytes image, const char *name, struct image_function *f)
{
	struct function_query q = {.name = name, .best = f};

	return function_search(image, &q);
}

/* The section of code that has these bytes. */
static const uint8_t *code_search(struct bytes image, uint64_t pc, uint64_t len, uint64_t *start)
{
	struct elf_sections all;
	struct bytes code;
	Elf64_Shdr s;
	uint64_t i;

	if (!image_open(image, &all))
		return NULL;
	for (i = 1; elf_section(&all, i, &s); i++) {
		if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR) || pc < s.sh_addr)
			continue;
		code = elf_section_bytes(&all, &s);
		if (pc - s.sh_addr < code.len && len <= code.len - (pc - s.sh_addr)) {
			*start = s.sh_addr;
			return code.data + (pc - s.sh_addr);
		}
	}
	return NULL;
}

const uint8_t *image_code(struct bytes image, uint64_t pc, uint64_t len)
{
	uint64_t start;

	return code_search(image, pc, len, &start);
}

bool image_kernel(struct bytes image, uint64_t pc, struct image_function *f)
{
	uint64_t start;

	return code_search(image, pc, 1, &start) && image_entry(image, start, f);
}

#define INFO_SIZED	4	/* format of an attribute: two bytes of length, then as many */
#define INFO_PARAMS	0x0a	/* attribute: symbol, offset in bank 0 (two bytes), size (two) */

bool image_params_offset(struct bytes image, const char *kernel, uint32_t *offset)
{
	char name[4096 + 16];	/* the longest name of a kernel */
	struct bytes info;
	size_t at = 0, n;

	if (snprintf(name, sizeof(name), ".nv.info.%s", kernel) >= (int)sizeof(name) ||
	    !image_section(image, name, &info))
		return false;
	for (; info.len - at >= 4; at += 4 + n) {
		const uint8_t *p = info.data + at;

		n = p[0] == INFO_SIZED ? p[2] | (size_t)p[3] << 8 : 0;
		if (n > info.len - at - 4)
			return false;
		if (p[0] == INFO_SIZED && p[1] == INFO_PARAMS && n >= 8) {
			*offset = p[8] | (uint32_t)p[9] << 8;
			return true;
		}
	}
	return false;
}

bool image_section(struct bytes image, const char *name, struct bytes *bytes)
{
	struct elf_sections all;
	Elf64_Shdr s;

	*bytes = (struct bytes){.data = NULL};
	if (image_open(image, &all) && elf_section_named(&all, name, &s))
		*bytes = elf_section_bytes(&all, &s);
	return bytes->data;
}

void image_objects(struct bytes image, const char *section, image_object_fn *fn, void *arg)
{
	struct elf_sections all;
	struct image_object o;
	struct symbols symbols;
	uint64_t i, number;
	Elf64_Shdr s;
	Elf64_Sym sym;

	if (!image_open(image, &all))
		return;
	number = elf_section_named(&all, section, &s);
	/* sections beyond what a symbol can name have their numbers elsewhere */
	if (!number || number >= SHN_LORESERVE || !symbols_open(&symbols, &all))
		return;
	for (i = 0; symbols_get(&symbols, i, &sym); i++) {
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx != number)
			continue;
		o = (struct image_object){.value = sym.st_value, .size = sym.st_size};
		if (symbols.names.data && sym.st_name < symbols.names.len) {
			o.name = (const char *)symbols.names.data + sym.st_name;
			o.name_max = symbols.names.len - sym.st_name;
		}
		if (fn(arg, &o))
			return;
	}
}
