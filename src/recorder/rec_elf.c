/* SPDX-License-Identifier: Apache-2.0
 * Finds functions in loaded libraries by reading their own symbol tables.
 *
 * dlsym will not do: PyTorch's libraries are loaded RTLD_LOCAL, where RTLD_NEXT finds nothing, and
 * RTLD_DEFAULT would find the recorder's own wrappers.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "rec.h"

struct tables {
	const ElfW(Sym) * sym;
	const char *str;
	const uint32_t *gnu;
	const uint32_t *sysv;
};

/* glibc relocates these pointers in memory for most objects, but not for the vDSO: add the bias only
 * if the value is not yet an address inside the object. */
static const void *dyn_ptr(const struct elf_object *o, ElfW(Addr) value)
{
	return (const void *)(value < o->base ? value + o->base : value);
}

uintptr_t elf_dynamic(const struct elf_object *o, int64_t tag)
{
	for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_val;
	return 0;
}

const void *elf_table(const struct elf_object *o, int64_t tag)
{
	uintptr_t value = elf_dynamic(o, tag);

	return value ? dyn_ptr(o, value) : NULL;
}

static bool read_tables(const struct elf_object *o, struct tables *t)
{
	*t = (struct tables){.sym = elf_table(o, DT_SYMTAB), .str = elf_table(o, DT_STRTAB),
			     .gnu = elf_table(o, DT_GNU_HASH), .sysv = elf_table(o, DT_HASH)};
	return t->sym && t->str && (t->gnu || t->sysv);
}

static bool is_it(const struct tables *t, uint32_t i, const char *name)
{
	const ElfW(Sym) *s = &t->sym[i];

	return s->st_shndx != SHN_UNDEF && s->st_value && strcmp(t->str + s->st_name, name) == 0;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 33 + *c;
	return h;
}

static uint32_t gnu_lookup(const struct tables *t, const char *name)
{
	uint32_t nbuckets = t->gnu[0], first = t->gnu[1], nbloom = t->gnu[2], shift = t->gnu[3];
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)&t->gnu[4];
	const uint32_t *bucket = (const uint32_t *)&bloom[nbloom];
	const uint32_t *chain = &bucket[nbuckets];
	uint32_t h = gnu_hash(name), bits = 8 * sizeof(ElfW(Addr)), i;
	ElfW(Addr) word;

	if (!nbuckets || !nbloom)
		return 0;
	word = bloom[(h / bits) % nbloom];
	if (!((word >> (h % bits)) & (word >> ((h >> shift) % bits)) & 1))
		return 0;
	for (i = bucket[h % nbuckets]; i >= first && i; i++) {
		if ((chain[i - first] | 1) == (h | 1) && is_it(t, i, name))
			return i;
		if (chain[i - first] & 1)
			break;
	}
	return 0;
}

static uint32_t sysv_lookup(const struct tables *t, const char *name)
{
	uint32_t nbuckets = t->sysv[0], h = 0, g;
	const uint32_t *bucket = &t->sysv[2], *chain = &bucket[nbuckets];

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		h = (h << 4) + *c;
		g = h & 0xf0000000;
		h = (h ^ (g >> 24)) & ~g;
	}
	for (uint32_t i = nbuckets ? bucket[h % nbuckets] : 0; i; i = chain[i])
		if (is_it(t, i, name))
			return i;
	return 0;
}

void *elf_symbol(const struct elf_object *o, const char *name)
{
	struct tables t;
	uint32_t i;

	if (!read_tables(o, &t))
		return NULL;
	i = t.gnu ? gnu_lookup(&t, name) : sysv_lookup(&t, name);
	return i ? (void *)(o->base + t.sym[i].st_value) : NULL;
}

static void describe(struct dl_phdr_info *info, struct elf_object *o)
{
	size_t n = strlen(info->dlpi_name);

	memset(o, 0, sizeof(*o));
	o->base = info->dlpi_addr;
	o->start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_DYNAMIC)
			o->dynamic = (const void *)(o->base + p->p_vaddr);
		if (p->p_type == PT_GNU_RELRO)
			o->relro_end = o->base + p->p_vaddr + p->p_memsz;
		if (p->p_type != PT_LOAD)
			continue;
		if ((p->p_flags & PF_W) && !o->data)
			o->data = o->base + p->p_vaddr;
		if (p->p_flags & PF_W)
			o->data_end = o->base + p->p_vaddr + p->p_memsz;
		if (o->base + p->p_vaddr < o->start)
			o->start = o->base + p->p_vaddr;
		if (o->base + p->p_vaddr + p->p_memsz > o->end)
			o->end = o->base + p->p_vaddr + p->p_memsz;
	}
	if (n >= sizeof(o->name))
		n = sizeof(o->name) - 1;
	memcpy(o->name, info->dlpi_name, n);
}

struct search {
	const char *prefix;		/* by name */
	uintptr_t address;		/* or by address */
	const char *symbol;		/* or by what it defines */
	void *found_symbol;
	bool only_after_us, past_us;
	struct elf_object *out;
};

static int match(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *base = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (s->prefix && strncmp(base, s->prefix, strlen(s->prefix)) != 0)
		return 0;
	describe(info, s->out);
	if (s->address && (s->address < s->out->start || s->address >= s->out->end))
		return 0;
	if (s->symbol) {
		/* never our own wrappers */
		if ((uintptr_t)match >= s->out->start && (uintptr_t)match < s->out->end) {
			s->past_us = true;
			return 0;
		}
		if (s->only_after_us && !s->past_us)
			return 0;
		s->found_symbol = elf_symbol(s->out, s->symbol);
		return s->found_symbol != NULL;
	}
	return 1;
}

/* The loader holds a lock meanwhile. A signal handler that jumps out (rec_jump.c) would leave it locked: the next forked
 * child or dlopen on another thread would wait for it forever. */
static bool search_objects(struct search *s)
{
	struct signals signals = signals_block();
	bool found = dl_iterate_phdr(match, s) == 1;

	signals_unblock(&signals);
	return found;
}

bool elf_find_object(const char *basename_prefix, struct elf_object *out)
{
	struct search s = {.prefix = basename_prefix, .out = out};

	return search_objects(&s);
}

bool elf_object_at(const void *address, struct elf_object *out)
{
	struct search s = {.address = (uintptr_t)address, .out = out};

	return search_objects(&s);
}

void *elf_symbol_anywhere(const char *name)
{
	struct elf_object o;
	struct search s = {.symbol = name, .out = &o};

	return search_objects(&s) ? s.found_symbol : NULL;
}

/* Objects are listed in the order in which symbols are looked up. Signals are not blocked: another library's sigprocmask
 * may call dlsym, whose next in line is found by this very search. It runs once, before the program has handlers. */
void *elf_symbol_after_us(const char *name)
{
	struct elf_object o;
	struct search s = {.symbol = name, .only_after_us = true, .out = &o};

	return dl_iterate_phdr(match, &s) == 1 ? s.found_symbol : NULL;
}

bool elf_needs(const struct elf_object *o, const char *soname_prefix, char *soname, size_t size)
{
	struct tables t;

	if (!read_tables(o, &t))
		return false;
	for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL; d++) {
		const char *needed = t.str + d->d_un.d_val;

		if (d->d_tag == DT_NEEDED && strncmp(needed, soname_prefix, strlen(soname_prefix)) == 0) {
			text_copy(soname, size, needed, strlen(needed));
			return true;
		}
	}
	return false;
}

bool elf_linked(const void *caller, const char *prefix, struct elf_object *who, struct elf_object *library)
{
	char soname[64] = "";

	if (!elf_object_at(caller, who))
		return false;
	/* "libcudart.so.13", or the name under which a packager bundled it */
	return (elf_needs(who, prefix, soname, sizeof(soname)) && elf_find_object(soname, library)) ||
	       elf_find_object(prefix, library);
}
