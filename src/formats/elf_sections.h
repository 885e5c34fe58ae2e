/* SPDX-License-Identifier: Apache-2.0
 * The sections of a 64-bit ELF file: a library, a core dump, a module of GPU code. Any bytes may be passed in and none are
 * trusted: every access is checked against the length of the file.
 */
#ifndef CUWHY_ELF_SECTIONS_H
#define CUWHY_ELF_SECTIONS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/* The file: in memory, or on disk and read on demand. It is never mapped: the reader of a mapped file
 * dies of SIGBUS when the file is truncated. */
struct elf_source {
	int fd;			/* -1: in memory */
	const uint8_t *data;
	uint64_t len;
};

static inline struct elf_source elf_in_memory(struct bytes b)
{
	return (struct elf_source){-1, b.data, b.len};
}

static inline bool elf_inside(const struct elf_source *f, uint64_t off, uint64_t len)
{
	return (f->fd >= 0 || f->data) && off <= f->len && len <= f->len - off;
}

/* As many of these bytes as the file has. Returns how many. */
size_t elf_read(const struct elf_source *f, uint64_t off, void *to, size_t n);

/* All of these bytes, or false. */
static inline bool elf_get(const struct elf_source *f, uint64_t off, void *to, size_t n)
{
	if (!elf_inside(f, off, n))
		return false;
	if (f->fd >= 0)
		return elf_read(f, off, to, n) == n;
	memcpy(to, f->data + off, n);
	return true;
}

/* False unless it is a 64-bit little-endian ELF file. */
bool elf_header(const struct elf_source *f, Elf64_Ehdr *h);

struct elf_sections {
	struct elf_source file;
	uint64_t at, stride;	/* of their headers */
	uint64_t n;		/* how many there are, according to the file */
	uint64_t room;		/* how many fit in the file */
	uint64_t names;		/* the section that holds their names */
};

/* Where the sections are. False, with no sections, when the headers are not the kind we read. */
bool elf_sections_open(struct elf_sections *all, struct elf_source file, const Elf64_Ehdr *h);

/* A section; false when it does not exist. */
static inline bool elf_section(const struct elf_sections *all, uint64_t i, Elf64_Shdr *s)
{
	return i < all->n && i < all->room && elf_get(&all->file, all->at + i * all->stride, s, sizeof(*s));
}

/* Is this the section's name? `names` is the section that holds them. */
bool elf_section_is(const struct elf_sections *all, const Elf64_Shdr *names, const Elf64_Shdr *s, const char *name);

/* The index of the section with this name; 0 = there is none. */
uint64_t elf_section_named(const struct elf_sections *all, const char *name, Elf64_Shdr *s);

/* The contents of a section, for a file in memory; `.data` is NULL when it is empty or not inside the file. */
struct bytes elf_section_bytes(const struct elf_sections *all, const Elf64_Shdr *s);

#endif
