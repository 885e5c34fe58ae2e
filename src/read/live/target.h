/* SPDX-License-Identifier: Apache-2.0
 * What is mapped where in another process, and the symbols of the files that are.
 */
#ifndef CUWHY_TARGET_H
#define CUWHY_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pool.h"

struct mapping {
	uint64_t start, end, offset;
	bool exec;
	const char *path;	/* "" = no file */
	uint32_t module;	/* index into the modules */
};

/* A file of code that is mapped, once however many mappings it has. */
struct module {
	const char *path, *base;	/* base: the last part of the path */
	uint64_t start;		/* of its first mapping, at offset 0 */
	bool opened;
	uint64_t bias;		/* address in memory less address in the file */
	struct module_symbol { uint64_t at, size; const char *name; bool is_function; } *symbol;
	size_t n_symbols;
	uint64_t runtime_section;	/* ".PyRuntime", as an address in memory; 0 = none */
};

struct target {
	pid_t pid;
	struct pool pool;
	struct mapping *map;
	size_t n_maps;
	struct module *module;
	size_t n_modules;
	bool is_32bit;		/* nothing of it is above 4 GiB, not even its stack */
};

/* 0, or -errno: -EACCES, if it may not be looked at. */
int target_open(struct target *t, pid_t pid);
/* From the text of a maps file; for tests. */
void target_parse(struct target *t, const char *maps);
void target_close(struct target *t);

const struct mapping *target_mapping(const struct target *t, uint64_t address);	/* NULL = none */
/* The file of code that the address is in; NULL = none. */
struct module *target_module(const struct target *t, uint64_t address);

/* An address in memory, 0 = there is no such symbol. */
uint64_t module_symbol(const struct target *t, struct module *m, const char *name);
/* The function around an address: its name and the distance from its start; NULL when it is not known. */
const char *module_function(const struct target *t, struct module *m, uint64_t address, uint64_t *offset);

/* Is a file of this kind mapped, "libcuda.so"? By the beginning of its name. */
struct module *target_has(const struct target *t, const char *base);

#endif
