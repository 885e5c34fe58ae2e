/* SPDX-License-Identifier: Apache-2.0
 * The parts of an ELF file that the dynamic loader reads (see elf_file.h).
 */
#include "formats/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/tree.h"

#define TEXT_MAX	4096	/* longer paths are truncated, but none is longer */
#define DYN_MAX		1024
#define PHDR_MAX	128
#define SECTIONS_MAX	4096
#define NAME_MAX_LEN	4096
#define CHAIN_MAX	4096	/* steps in one bucket; real tables have a few */
#define STEPS_MAX	1000000	/* in all lookups of one file; then everything counts as exported: no false alarm */
#define TABLE_MAX	(64u << 20)

static size_t read_at(const struct elf_file *f, uint64_t offset, void *to, size_t size)
{
	return elf_read(&(struct elf_source){f->fd, NULL, f->size}, offset, to, size);
}

/* Reads bytes at an address of the loaded image; returns how many could be read. */
static size_t bytes_at(const struct elf_file *f, uint64_t vaddr, void *to, size_t size)
{
	for (unsigned i = 0; i < f->n_loads; i++) {
		const struct elf_load *l = &f->load[i];
		uint64_t in;

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->size)
			continue;
		in = vaddr - l->vaddr;
		if (size > l->size - in)
			size = (size_t)(l->size - in);
		return l->offset > UINT64_MAX - in ? 0 : read_at(f, l->offset + in, to, size);
	}
	return 0;
}

static const char *dyn_text(const struct elf_file *f, struct pool *pool, uint64_t offset)
{
	char text[TEXT_MAX];
	size_t n;

	if (!f->strtab || offset >= f->strsize || offset > UINT64_MAX - f->strtab)
		return NULL;
	n = bytes_at(f, f->strtab + offset, text, sizeof(text));
	n = n ? strnlen(text, n) : 0;
	return n && n < sizeof(text) ? pool_copy(pool, text, n) : NULL;
}

/* Addresses first: the texts need the string table, which may come after them. */
static void take_dynamic_address(struct elf_file *f, const Elf64_Dyn *d)
{
	switch (d->d_tag) {
	case DT_STRTAB: f->strtab = d->d_un.d_ptr; break;
	case DT_STRSZ: f->strsize = d->d_un.d_val; break;
	case DT_SYMTAB: f->symtab = d->d_un.d_ptr; break;
	case DT_GNU_HASH: f->gnu_hash = d->d_un.d_ptr; break;
	case DT_HASH: f->sysv_hash = d->d_un.d_ptr; break;
	case DT_FLAGS_1: f->no_default = d->d_un.d_val & DF_1_NODEFLIB; break;
	default: break;
	}
}

static void take_dynamic_text(struct elf_file *f, struct pool *pool, const Elf64_Dyn *d)
{
	const char *name;

	switch (d->d_tag) {
	case DT_SONAME: f->soname = dyn_text(f, pool, d->d_un.d_val); break;
	case DT_RPATH: f->rpath = dyn_text(f, pool, d->d_un.d_val); break;
	case DT_RUNPATH: f->runpath = dyn_text(f, pool, d->d_un.d_val); break;
	case DT_NEEDED:
		name = f->n_needed < ELF_NEEDED_MAX ? dyn_text(f, pool, d->d_un.d_val) : NULL;
		if (name)
			f->needed[f->n_needed++] = name;
		break;
	default: break;
	}
}

static void read_dynamic(struct elf_file *f, struct pool *pool, const Elf64_Phdr *p)
{
	Elf64_Dyn dyn[DYN_MAX];
	size_t n = p->p_filesz < sizeof(dyn) ? (size_t)p->p_filesz : sizeof(dyn);
	size_t count = read_at(f, p->p_offset, dyn, n) / sizeof(dyn[0]), i;

	if (count == 0) {
		f->broken = "cut short";
		return;
	}
	for (i = 0; i < count && dyn[i].d_tag != DT_NULL; i++)
		take_dynamic_address(f, &dyn[i]);
	count = i;
	f->needed = pool_alloc(pool, ELF_NEEDED_MAX * sizeof(*f->needed));
	for (i = 0; i < count; i++)
		take_dynamic_text(f, pool, &dyn[i]);
}

static void read_notes(struct elf_file *f, const Elf64_Phdr *p)
{
	uint8_t notes[1024];
	size_t n = read_at(f, p->p_offset, notes, p->p_filesz < sizeof(notes) ? (size_t)p->p_filesz : sizeof(notes));

	for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= n;) {
		Elf64_Nhdr h;
		size_t name, desc;

		memcpy(&h, notes + at, sizeof(h));
		name = at + sizeof(h);
		if (h.n_namesz > n || h.n_descsz > n)
			return;
		desc = name + ((h.n_namesz + 3u) & ~3u);
		if (desc + h.n_descsz > n)
			return;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
		    h.n_descsz <= sizeof(f->build_id)) {
			memcpy(f->build_id, notes + desc, h.n_descsz);
			f->build_id_len = h.n_descsz;
		}
		at = desc + ((h.n_descsz + 3u) & ~3u);
	}
}

static void add_load(struct elf_file *f, const Elf64_Phdr *p)
{
	if (f->n_loads == ELF_LOADS_MAX || p->p_filesz == 0)
		return;
	/* A library that was copied incompletely: accessing what is mapped beyond its end crashes the program. */
	if (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset)
		f->broken = "cut short";
	f->load[f->n_loads++] = (struct elf_load){p->p_vaddr, p->p_offset, p->p_filesz};
}

static void read_segments(struct elf_file *f, struct pool *pool, const Elf64_Ehdr *h)
{
	Elf64_Phdr ph[PHDR_MAX];
	size_t n = h->e_phnum < PHDR_MAX ? h->e_phnum : PHDR_MAX;

	if (h->e_phentsize != sizeof(ph[0]) || read_at(f, h->e_phoff, ph, n * sizeof(ph[0])) != n * sizeof(ph[0])) {
		f->broken = "cut short";
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD)
			add_load(f, &ph[i]);
	for (size_t i = 0; i < n; i++) {
		if (ph[i].p_type == PT_DYNAMIC && !f->needed)
			read_dynamic(f, pool, &ph[i]);
		else if (ph[i].p_type == PT_NOTE && !f->build_id_len)
			read_notes(f, &ph[i]);
	}
}

/* The order of glibc's checks: a file for another word size or machine is skipped, anything else ends the program. */
static void read_header(struct elf_file *f, struct pool *pool, uint16_t machine)
{
	Elf64_Ehdr h;
	size_t n = read_at(f, 0, &h, sizeof(h));

	if (f->size == 0)
		f->broken = "empty file";
	else if (n < EI_NIDENT || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		f->broken = "not an ELF file";
	else if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
		f->foreign = true;
	else if (n < sizeof(h))
		f->broken = "cut short";
	else if (machine && h.e_machine != machine)
		f->foreign = true;
	if (f->broken || f->foreign)
		return;
	f->machine = h.e_machine;
	elf_sections_open(&f->sections, (struct elf_source){f->fd, NULL, f->size}, &h);
	read_segments(f, pool, &h);
}

int elf_open(struct elf_file *f, struct pool *pool, const char *root, const char *path, uint16_t machine)
{
	struct stat st;

	*f = (struct elf_file){.fd = tree_open(root, path)};
	if (f->fd < 0)
		return f->fd;
	if (fstat(f->fd, &st) == 0) {
		f->size = (uint64_t)st.st_size;
		f->dev = st.st_dev;
		f->ino = st.st_ino;
	}
	read_header(f, pool, machine);
	return 0;
}

void elf_close(struct elf_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	f->sections = (struct elf_sections){.file = {.fd = -1}};
}

bool elf_has_section(const struct elf_file *f, const char *name)
{
	Elf64_Shdr names, s;

	if (!elf_section(&f->sections, f->sections.names, &names))
		return false;
	for (uint64_t i = 1; i < SECTIONS_MAX && elf_section(&f->sections, i, &s); i++)
		if (s.sh_size > 0 && elf_section_is(&f->sections, &names, &s, name))
			return true;
	return false;
}

struct gnu_header { uint32_t n_buckets, first, bloom_words, bloom_shift; };

static bool get_at(const struct elf_file *f, uint64_t vaddr, void *to, size_t size)
{
	return bytes_at(f, vaddr, to, size) == size;
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

	return len < sizeof(text) && get_at(f, f->symtab + (uint64_t)index * sizeof(s), &s, sizeof(s)) &&
	       is_defined(&s) && s.st_name < f->strsize &&
	       bytes_at(f, f->strtab + s.st_name, text, len + 1) == len + 1 && memcmp(text, name, len + 1) == 0;
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
	    !get_at(f, f->gnu_hash + sizeof(*g) + 8ull * ((hash / 64) & (g->bloom_words - 1)), &word, sizeof(word)))
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

	if (!get_at(f, f->gnu_hash, &g, sizeof(g)) || g.n_buckets == 0 || bloom_says_no(f, &g, hash))
		return false;
	buckets = f->gnu_hash + sizeof(g) + 8ull * g.bloom_words;
	if (!get_at(f, buckets + 4ull * (hash % g.n_buckets), &i, sizeof(i)) || i < g.first)
		return false;
	for (int step = 0; step < CHAIN_MAX; step++, i++) {
		if (++f->steps > STEPS_MAX)
			return true;
		if (!get_at(f, buckets + 4ull * g.n_buckets + 4ull * (i - g.first), &link, sizeof(link)))
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
	if (!get_at(f, f->sysv_hash, head, sizeof(head)) || head[0] == 0 ||
	    !get_at(f, f->sysv_hash + 8 + 4ull * (h % head[0]), &i, sizeof(i)))
		return false;
	for (int step = 0; step < CHAIN_MAX && i; step++) {
		if (++f->steps > STEPS_MAX)
			return true;
		if (symbol_is(f, i, name, strlen(name)))
			return true;
		if (!get_at(f, f->sysv_hash + 8 + 4ull * head[0] + 4ull * i, &i, sizeof(i)))
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
	n = bytes_at(f, buckets, list, g->n_buckets * sizeof(*list)) / sizeof(*list);
	for (size_t i = 0; i < n; i++)
		highest = list[i] > highest ? list[i] : highest;
	free(list);
	if (highest < g->first)
		return g->first;
	buckets += 4ull * g->n_buckets;
	for (int step = 0; step < CHAIN_MAX; step++, highest++)
		if (!get_at(f, buckets + 4ull * (highest - g->first), &link, sizeof(link)) || (link & 1))
			break;
	return (size_t)highest + 1;
}

/* In a loaded image, only the hash tables tell how many symbols there are. Undefined ones come before the first
 * that the GNU table knows. */
static size_t count_symbols(const struct elf_file *f, bool undefined)
{
	struct gnu_header g;
	uint32_t head[2];

	if (f->sysv_hash && get_at(f, f->sysv_hash, head, sizeof(head)))
		return head[1];
	if (!f->gnu_hash || !get_at(f, f->gnu_hash, &g, sizeof(g)))
		return 0;
	return undefined ? g.first : count_by_gnu_hash(f, &g);
}

static char *read_strings(const struct elf_file *f, size_t *size)
{
	char *text;

	if (f->strsize == 0 || f->strsize > TABLE_MAX || f->strsize > f->size)
		return NULL;
	text = xmalloc((size_t)f->strsize + 1);
	*size = bytes_at(f, f->strtab, text, (size_t)f->strsize);
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
	n = bytes_at(f, f->symtab, sym, n * sizeof(*sym)) / sizeof(*sym);
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
