/* SPDX-License-Identifier: Apache-2.0
 * /etc/ld.so.cache: where the loader looks before it looks in folders.
 */
#ifndef CUWHY_LDCACHE_H
#define CUWHY_LDCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ldcache {
	const char *data;		/* not owned */
	size_t size;
	size_t texts_end;		/* after the last NUL: texts that start before it end inside the file */
	size_t base;			/* string offsets count from here */
	size_t entries, n_entries, entry_size;
	size_t hwcaps, n_hwcaps;	/* offset and number of the names of glibc-hwcaps folders */
	const char *reason;		/* why there is nothing to look in; NULL: fine */
};

/* Any bytes. `machine` is an ELF machine number, `level` the x86-64 level of the CPU (1 to 4): which glibc-hwcaps
 * folders it may use. */
void ldcache_parse(struct ldcache *c, const void *data, size_t size);
const char *ldcache_find(const struct ldcache *c, const char *soname, uint16_t machine, int level);

#endif
