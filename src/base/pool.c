/* SPDX-License-Identifier: Apache-2.0
 * Memory that lives and dies together (see pool.h).
 */
#include "base/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct pool_block {
	struct pool_block *next;
	max_align_t data[];
};

void *pool_alloc(struct pool *p, size_t size)
{
	struct pool_block *b = xcalloc(1, sizeof(*b) + size);

	b->next = p->newest;
	p->newest = b;
	return b->data;
}

char *pool_copy(struct pool *p, const char *text, size_t len)
{
	char *copy = pool_alloc(p, len + 1);

	memcpy(copy, text, len);
	return copy;
}

char *pool_strdup(struct pool *p, const char *text)
{
	return pool_copy(p, text, strlen(text));
}

char *pool_printf(struct pool *p, const char *fmt, ...)
{
	va_list ap;
	char *text, *copy;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	copy = pool_strdup(p, text);
	free(text);
	return copy;
}

void pool_release(struct pool *p)
{
	while (p->newest) {
		struct pool_block *b = p->newest;

		p->newest = b->next;
		free(b);
	}
}

void pool_move(struct pool *to, struct pool *from)
{
	struct pool_block **tail = &from->newest;

	while (*tail)
		tail = &(*tail)->next;
	*tail = to->newest;
	to->newest = from->newest;
	from->newest = NULL;
}
