/* SPDX-License-Identifier: Apache-2.0
 * Redirects the calls that one library makes to others, by its own table of addresses: other callers of these functions are not
 * affected, and pay nothing.
 *
 * The loader has filled the table in (or will, at the first call of each function) from relocations that name the symbols.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "rec.h"

static bool is_reference(uint64_t info)
{
	switch (ELF64_R_TYPE(info)) {
#define X(type) case type:
	ARCH_REFERENCES(X)
#undef X
		return true;
	default:
		return false;
	}
}

/* It leads where we would call, or into the library itself: then the loader has not looked the function up yet. Anything else was
 * put there by another tool that redirects calls, and must be left alone. */
static bool is_usual(const struct elf_object *o, const void *now, const void *usual)
{
	struct elf_object where;

	return now == usual || ((uintptr_t)now >= o->start && (uintptr_t)now < o->end) ||
	       (elf_object_at(usual, &where) && (uintptr_t)now >= where.start && (uintptr_t)now < where.end);
}

/* Most linkers have the loader protect the table once it is filled in. Whole pages only: what is on the last, partial one stays writable. */
static bool store(const struct elf_object *o, void **slot, void *value)
{
	uintptr_t page = getauxval(AT_PAGESZ), at = (uintptr_t)slot & -page;
	bool locked = (uintptr_t)slot < (o->relro_end & -page);

	if ((uintptr_t)slot < o->data || (uintptr_t)(slot + 1) > o->data_end || (uintptr_t)slot % sizeof(void *))
		return false;
	if (locked && mprotect((void *)at, page, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (locked)
		mprotect((void *)at, page, PROT_READ);
	return true;
}

static uint32_t redirect_in(const struct elf_object *o, int64_t table, int64_t size, uint64_t skip,
			    const struct elf_import *list, size_t n)
{
	const ElfW(Rela) *r = elf_table(o, table), *end = r ? r + elf_dynamic(o, size) / sizeof(*r) : NULL;
	const ElfW(Sym) *sym = elf_table(o, DT_SYMTAB);
	const char *str = elf_table(o, DT_STRTAB);
	uint32_t done = 0;

	for (r = r ? r + skip : NULL; sym && str && r < end; r++) {
		void **slot = (void **)(o->base + r->r_offset);
		const char *name = str + sym[ELF64_R_SYM(r->r_info)].st_name;

		if (!is_reference(r->r_info) || !ELF64_R_SYM(r->r_info) || r->r_addend)
			continue;
		for (size_t i = 0; i < n; i++)
			if (strcmp(name, list[i].name) == 0)
				done += is_usual(o, __atomic_load_n(slot, __ATOMIC_ACQUIRE), list[i].usual) &&
					store(o, slot, list[i].instead);
	}
	return done;
}

uint32_t elf_redirect(const struct elf_object *o, const struct elf_import *list, size_t n)
{
	/* those that name no symbol come first, tens of thousands of them */
	return redirect_in(o, DT_RELA, DT_RELASZ, elf_dynamic(o, DT_RELACOUNT), list, n) +
	       redirect_in(o, DT_JMPREL, DT_PLTRELSZ, 0, list, n);
}
