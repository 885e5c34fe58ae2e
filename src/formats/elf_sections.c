/* SPDX-License-Identifier: Apache-2.0
 * The sections of a 64-bit ELF file (see elf_sections.h).
 */
#include "formats/elf_sections.h"

#include <errno.h>
#include <unistd.h>

#define NAME_MAX_LEN	64	/* longest name that callers look for */

size_t elf_read(const struct elf_source *f, uint64_t off, void *to, size_t n)
{
	size_t done = 0;
	ssize_t got;

	if (!elf_inside(f, off, 0))
		return 0;
	if (n > f->len - off)
		n = (size_t)(f->len - off);
	if (f->fd < 0) {
		memcpy(to, f->data + off, n);
		return n;
	}
	while (done < n) {
		got = pread(f->fd, (uint8_t *)to + done, n - done, (off_t)(off + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

bool elf_header(const struct elf_source *f, Elf64_Ehdr *h)
{
	return elf_get(f, 0, h, sizeof(*h)) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
	       h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* More than 65,279 sections do not fit the header: then their count, and the section of their names, are in
 * section 0. */
bool elf_sections_open(struct elf_sections *all, struct elf_source file, const Elf64_Ehdr *h)
{
	Elf64_Shdr zero;

	*all = (struct elf_sections){.file = file};
	if (h->e_shentsize < sizeof(zero) || h->e_shoff == 0 || h->e_shoff > file.len)
		return false;
	all->at = h->e_shoff;
	all->stride = h->e_shentsize;
	all->room = (file.len - all->at) / all->stride;
	all->n = h->e_shnum;
	all->names = h->e_shstrndx;
	if (h->e_shnum != 0 && h->e_shstrndx != SHN_XINDEX)
		return true;
	if (!elf_get(&file, all->at, &zero, sizeof(zero)))
		zero = (Elf64_Shdr){0};
	if (h->e_shnum == 0)
		all->n = zero.sh_size;
	if (h->e_shstrndx == SHN_XINDEX)
		all->names = zero.sh_link;
	return true;
}

/* Looks at no more bytes than the name has: a hostile file may have very long ones. */
bool elf_section_is(const struct elf_sections *all, const Elf64_Shdr *names, const Elf64_Shdr *s, const char *name)
{
	char text[NAME_MAX_LEN];
	size_t len = strlen(name) + 1;

	return len <= sizeof(text) && s->sh_name < names->sh_size && len <= names->sh_size - s->sh_name &&
	       names->sh_offset <= all->file.len &&
	       elf_get(&all->file, names->sh_offset + s->sh_name, text, len) && memcmp(text, name, len) == 0;
}

uint64_t elf_section_named(const struct elf_sections *all, const char *name, Elf64_Shdr *s)
{
	Elf64_Shdr names;

	if (!elf_section(all, all->names, &names))
		return 0;
	for (uint64_t i = 1; elf_section(all, i, s); i++)
		if (elf_section_is(all, &names, s, name))
			return i;
	return 0;
}

struct bytes elf_section_bytes(const struct elf_sections *all, const Elf64_Shdr *s)
{
	if (all->file.fd >= 0 || s->sh_type == SHT_NOBITS || s->sh_size == 0 ||
	    !elf_inside(&all->file, s->sh_offset, s->sh_size))
		return (struct bytes){NULL, 0};
	return (struct bytes){all->file.data + s->sh_offset, (size_t)s->sh_size};
}
