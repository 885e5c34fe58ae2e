/* SPDX-License-Identifier: Apache-2.0
 * The headers of one fat binary and of its entries. Read by the doctor, which has a file, and by the simulated driver, which has
 * an address; needs nothing but elf_sections.c.
 */
#ifndef CUWHY_FATBIN_ENTRY_H
#define CUWHY_FATBIN_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf_sections.h"

#define FATBIN_MAGIC	0xba55ed50u
#define FATBIN_HEADER	16u	/* bytes that must be readable to know how long a fat binary is */
#define FATBIN_ARCH_MAX 9999

enum fatbin_kind {
	FATBIN_SASS,		/* machine code */
	FATBIN_PTX,
	FATBIN_LTO,		/* for link-time optimization: cannot run as it is */
	FATBIN_OTHER,
};

enum fatbin_packing { FATBIN_PLAIN, FATBIN_LZ4, FATBIN_ZSTD };

struct fatbin_binary {
	uint64_t first;		/* where its entries begin */
	uint64_t size;		/* of all entries; may be more than there is */
};

struct fatbin_entry {
	enum fatbin_kind kind;
	unsigned number;	/* the kind, as the file has it */
	uint32_t arch;		/* 90; 0 or more than FATBIN_ARCH_MAX: no such GPU */
	char suffix;		/* 'a', 'f' or '\0' */
	int ptx;		/* PTX ISA version, 87 is 8.7; 0 for other kinds */
	enum fatbin_packing packing;
	uint64_t at, len;	/* the code as it is stored */
	uint64_t whole;		/* its size when unpacked */
	uint64_t next;		/* where the next entry begins */
};

/* The fat binary that begins at `at`; false: there is none. */
bool fatbin_binary_at(const struct elf_source *s, uint64_t at, uint64_t end, struct fatbin_binary *b);
/* The entry that begins at `at`; false: it is broken, or does not end before `end`. */
bool fatbin_entry_at(const struct elf_source *s, uint64_t at, uint64_t end, struct fatbin_entry *e);

#endif
