/* SPDX-License-Identifier: Apache-2.0
 * The few things of an ELF file that the dynamic loader looks at (see elf_file.h).
 */
#include "formats/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/tree.h"
#include "base/banned.h"

#define TEXT_MAX	4096	/* longer paths are cut: none is */
#define DYN_MAX		1024
#define PHDR_MAX	128
#define SECTIONS_MAX	4096

static size_t read_at(const struct elf_file *f, uint64_t offset, void *to, size_t size)
{
	ssize_t n;

	if (offset >= f->size)
		return 0;
	do {
		n = pread(f->fd, to, size, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? 0 : (size_t)n;
}

size_t elf_bytes(const struct elf_file *f, uint64_t vaddr, void *to, size_t size)
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
	n = elf_bytes(f, f->strtab + offset, text, sizeof(text));
	n = n ? strnlen(text, n) : 0;
	return n && n < sizeof(text) ? pool_copy(pool, text, n) : NULL;
}

/* Addresses first: the texts need the string table, which may come after them. */
static void take_address(struct elf_file *f, const Elf64_Dyn *d)
{
	switch (d->d_tag) {
	case DT_STRTAB: f->strtab = d->d_un.d_ptr; break;
	case DT_STRSZ: f->strsize = d->d_un.d_val; break;
	case DT_SYMTAB: f->symtab = d->d_un.d_ptr; break;
	case DT_GNU_HASH: f->gnu_hash = d->d_un.d_ptr; break;
	case DT_HASH: f->sysv_hash = d->d_un.d_ptr; break;
	case DT_VERSYM: f->versym = d->d_un.d_ptr; break;
	case DT_FLAGS_1: f->no_default = d->d_un.d_val & DF_1_NODEFLIB; break;
	default: break;
	}
}

static void take_text(struct elf_file *f, struct pool *pool, const Elf64_Dyn *d)
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
		take_address(f, &dyn[i]);
	count = i;
	f->needed = pool_alloc(pool, ELF_NEEDED_MAX * sizeof(*f->needed));
	for (i = 0; i < count; i++)
		take_text(f, pool, &dyn[i]);
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
	/* A library that was not copied whole: what is mapped beyond its end is a crash of the program. */
	if (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset)
		f->broken = "cut short";
	f->load[f->n_loads++] = (struct elf_load){p->p_vaddr, p->p_offset, p->p_filesz};
}

static void read_segments(struct elf_file *f, struct pool *pool, const Elf64_Ehdr *h)
{
	Elf64_Phdr ph[PHDR_MAX];
	size_t n = h->e_phnum < PHDR_MAX ? h->e_phnum : PHDR_MAX;
	char interp[256];

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
		else if (ph[i].p_type == PT_INTERP && ph[i].p_filesz < sizeof(interp)) {
			size_t len = read_at(f, ph[i].p_offset, interp, (size_t)ph[i].p_filesz);

			f->interp = pool_copy(pool, interp, strnlen(interp, len));
		}
	}
}

/* The order of glibc's checks: another word size or machine is passed over, anything else ends the program. */
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
	f->shoff = h.e_shentsize == sizeof(Elf64_Shdr) ? h.e_shoff : 0;
	f->shnum = h.e_shnum;
	f->shstrndx = h.e_shstrndx;
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
}

static bool section_named(const struct elf_file *f, const Elf64_Shdr *names, const Elf64_Shdr *s, const char *name)
{
	char text[64];
	size_t len = strlen(name) + 1;

	return s->sh_name < names->sh_size && len <= sizeof(text) &&
	       names->sh_offset <= UINT64_MAX - s->sh_name &&
	       read_at(f, names->sh_offset + s->sh_name, text, len) == len && memcmp(text, name, len) == 0;
}

bool elf_has_section(const struct elf_file *f, const char *name)
{
	size_t n = f->shnum < SECTIONS_MAX ? f->shnum : SECTIONS_MAX, got;
	Elf64_Shdr *s;
	bool found = false;

	if (!f->shoff || n == 0 || f->shstrndx >= n)
		return false;
	s = xcalloc(n, sizeof(*s));
	got = read_at(f, f->shoff, s, n * sizeof(*s)) / sizeof(*s);
	for (size_t i = 0; i < got && f->shstrndx < got && !found; i++)
		found = s[i].sh_size > 0 && section_named(f, &s[f->shstrndx], &s[i], name);
	free(s);
	return found;
}
