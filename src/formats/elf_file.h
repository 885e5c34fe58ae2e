/* SPDX-License-Identifier: Apache-2.0
 * The parts of an ELF file that the dynamic loader reads, read piece by piece: a library may be 500 MB.
 *
 * Nothing is mapped (truncating a mapped file causes SIGBUS), and every offset and count is checked.
 */
#ifndef CUWHY_ELF_FILE_H
#define CUWHY_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "formats/elf_sections.h"

#define ELF_LOADS_MAX	32
#define ELF_NEEDED_MAX	256

struct elf_load { uint64_t vaddr, offset, size; };

struct elf_file {
	int fd;
	uint64_t size;
	uint64_t dev, ino;
	const char *broken;	/* why it cannot be loaded: "empty file", "not an ELF file", "cut short"; NULL = it can */
	bool foreign;		/* other word size, byte order or machine: the loader skips it */
	uint16_t machine;
	struct elf_load load[ELF_LOADS_MAX];
	unsigned n_loads;
	const char *soname, *rpath, *runpath;	/* NULL = none */
	const char **needed;
	unsigned n_needed;
	bool no_default;	/* DF_1_NODEFLIB */
	uint64_t strtab, strsize, symtab, gnu_hash, sysv_hash;	/* addresses; 0 = none */
	uint8_t build_id[32];
	unsigned build_id_len;
	unsigned steps;		/* work done by elf_exports */
	struct elf_sections sections;
};

/* 0, or -errno when there is no such regular file. A file that exists but cannot be loaded is `broken` or `foreign`.
 * Close it whenever this returns 0. Texts live in the pool. */
int elf_open(struct elf_file *f, struct pool *pool, const char *root, const char *path, uint16_t machine);
void elf_close(struct elf_file *f);

bool elf_has_section(const struct elf_file *f, const char *name);

/* Does this file export it? According to its GNU (or else System V) hash table. */
bool elf_exports(struct elf_file *f, const char *symbol);

/* Calls `each` for every name in .dynsym (undefined ones only, or defined ones only) until it returns false.
 * Looks at no more than `max` symbols. false: the table cannot be read. */
bool elf_symbols(const struct elf_file *f, bool undefined, size_t max,
		 bool (*each)(void *arg, const char *name, bool weak), void *arg);

#endif
