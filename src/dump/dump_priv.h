/* SPDX-License-Identifier: Apache-2.0
 * How a dump is held in memory. Only for the files of src/dump.
 */
#ifndef CUWHY_DUMP_PRIV_H
#define CUWHY_DUMP_PRIV_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump/dump.h"

#define DUMP_MACHINE	190	/* EM_CUDA */

struct dump {
	uint8_t *base;		/* the file's bytes, where they have been read */
	size_t len;
	int fd;			/* -1: everything is in memory */
	bool mapped;		/* base is a mapping, not malloc */
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

#endif
