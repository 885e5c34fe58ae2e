/* SPDX-License-Identifier: Apache-2.0
 * Memory that lives and dies together: everything made for one answer is freed at once.
 */
#ifndef CUWHY_POOL_H
#define CUWHY_POOL_H

#include <stddef.h>

struct pool_block;

struct pool {
	struct pool_block *newest;
};

/* Zeroed memory, aligned for anything. Never NULL: the program exits when out of memory. */
void *pool_alloc(struct pool *p, size_t size);
char *pool_copy(struct pool *p, const char *text, size_t len);
char *pool_strdup(struct pool *p, const char *text);
char *pool_printf(struct pool *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pool_release(struct pool *p);

/* From now on, everything in `from` lives as long as `to`. */
void pool_move(struct pool *to, struct pool *from);

#endif
