/* SPDX-License-Identifier: Apache-2.0
 * A CUDA GPU core dump (ELF64, machine 190), read safely: any bytes may be passed in, none are trusted.
 *
 * The reader is our own, on top of <elf.h>, not libelf: a dump is nothing but section headers and rows,
 * libelf would map the file (a file cut short while it is mapped is a SIGBUS) or hold it whole, and every
 * field would still have to be checked against the file here.
 *
 * How it is kept in memory: address space of the file's size is reserved, and only what is needed is
 * read into its place. Headers and tables are read when the dump is opened, module images and memory
 * (nearly all of the bytes) on first use and once. What was read can no longer change, whatever happens to
 * the file.
 * Compressed dumps (gzip) are expanded in memory, up to 1 GiB.
 *
 * Returned pointers live as long as the dump. A dump is used by one thread at a time.
 */
#ifndef CUWHY_DUMP_H
#define CUWHY_DUMP_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include <string.h>

struct dump;
struct err;

enum dump_table {
#define TABLE(name, n)	DUMP_##name = n,
#include "read/dump/dump_fields.def"
	DUMP_TABLES_END
};

enum dump_field {
#define FIELD(table, name, off, bytes)	DUMP_##table##_##name,
#include "read/dump/dump_fields.def"
	DUMP_FIELDS_END
};

/* One row of one table. */
struct dump_row {
	struct dump *dump;
	const uint8_t *data;
	uint32_t len;		/* the table's stride */
	uint32_t table;		/* enum dump_table */
	uint32_t section;	/* 0 = no row */
	uint32_t index;
};

struct dump *dump_open(const char *path, struct err *e);
/* Ownership of `bytes` (malloc) moves to the dump, also when this fails. */
struct dump *dump_from_bytes(void *bytes, size_t len, struct err *e);
void dump_free(struct dump *d);

/* Do these first bytes look like a GPU core dump, plain or compressed (then it is only a guess)? */
bool dump_is_dump(const void *head, size_t len);

/* The sections of a type, in the order of their parents. */
size_t dump_sections(const struct dump *d, enum dump_table table, const uint32_t **sections);

/* A row of a section; false (and `row->section` 0) when there is no such row. */
bool dump_row(struct dump *d, uint32_t section, uint32_t index, struct dump_row *row);

/* The sections of a type that belong to this row, and the row that a section belongs to. */
size_t dump_children(const struct dump_row *row, enum dump_table table, const uint32_t **sections);
bool dump_parent(const struct dump_row *row, struct dump_row *parent);
/* The first section of that type below the row, 0 = none. */
uint32_t dump_child(const struct dump_row *row, enum dump_table table);
/* The bytes of that section: registers, parameters, images. */
struct bytes dump_child_bytes(const struct dump_row *row, enum dump_table table);

/* A field; false when the row is of another table, is absent, or is from a driver that did not have it. */
bool dump_has(const struct dump_row *row, enum dump_field f);
uint64_t dump_get(const struct dump_row *row, enum dump_field f);	/* 0 when it is not there */

/* A whole section; `.data` is NULL when it is empty or cannot be read. */
struct bytes dump_bytes(struct dump *d, uint32_t section);
uint64_t dump_address(struct dump *d, uint32_t section);

/* Bytes of the GPU's global memory, from a dump that has it; false when it does not have all of them. Sections of memory are as
 * large as allocations, so they are not read as a whole. */
bool dump_memory(struct dump *d, uint64_t address, void *to, size_t n);

/* A string named by a field: "" when there is none. */
const char *dump_string(const struct dump_row *row, enum dump_field f);

/* An element of a u32[] section; false when it is not there. */
static inline bool dump_word(struct bytes b, size_t i, uint32_t *value)
{
	if (!b.data || i >= b.len / sizeof(*value))
		return false;
	memcpy(value, b.data + i * sizeof(*value), sizeof(*value));
	*value = le32toh(*value);
	return true;
}

/* Walks every row of every table of a type; *cursor starts as 0. */
bool dump_next(struct dump *d, enum dump_table table, size_t *cursor, struct dump_row *row);

/* A number that tells dumps apart, compressed or not: a hash of all rows, 63 bits (it is written as JSON), never 0. */
uint64_t dump_mark(struct dump *d);

#endif
