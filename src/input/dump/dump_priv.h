/* SPDX-License-Identifier: Apache-2.0
 * How a dump is held in memory. Only for the files of src/dump.
 */
#ifndef CUWHY_DUMP_PRIV_H
#define CUWHY_DUMP_PRIV_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "input/dump/dump.h"

#define DUMP_MACHINE	190		/* EM_CUDA */
#define DUMP_TYPE_BASE	0x80000000u	/* SHT_LOUSER */

struct dump {
	uint8_t *base;		/* the file's bytes, where they have been read */
	size_t len;
	int fd;			/* -1: everything is in memory */
	bool mapped;		/* base is a mapping, not malloc */
	uint64_t n_read;	/* bytes read so far, bounded */
	uint64_t shoff;
	uint32_t shstride, n_sections;
	uint32_t strings;	/* section of the strings of the tables, 0 = none */
	uint8_t *read;		/* per section: has been read (of a file), or failed */
	uint32_t *order;	/* sections by type, then parent */
	uint32_t first[DUMP_TABLES_END + 1];	/* where each type begins in `order` */
};

struct err;

/* dump_load.c */
int dump_load(struct dump *d, const char *path, struct err *e);
int dump_expand(struct dump *d, struct err *e);		/* gzip; nothing to do for other bytes */
int dump_read(struct dump *d, uint64_t off, uint64_t len, struct err *e);
void dump_unload(struct dump *d);

/* Inside the file, and not beyond it. */
static inline bool dump_inside(const struct dump *d, uint64_t off, uint64_t len)
{
	return off <= d->len && len <= d->len - off;
}

/* False when there is no such section. */
static inline bool dump_section(const struct dump *d, uint32_t i, Elf64_Shdr *s)
{
	uint64_t off = d->shoff + (uint64_t)i * d->shstride;

	if (i >= d->n_sections || !dump_inside(d, off, sizeof(*s)))
		return false;
	memcpy(s, d->base + off, sizeof(*s));
	return true;
}

/* The table that a section holds (enum dump_table), 0 = none of them. */
static inline uint32_t dump_table_of(const Elf64_Shdr *s)
{
	uint32_t n = s->sh_type - DUMP_TYPE_BASE;

	return s->sh_type > DUMP_TYPE_BASE && n < DUMP_TABLES_END ? n : 0;
}

#endif
