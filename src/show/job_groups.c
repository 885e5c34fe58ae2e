/* SPDX-License-Identifier: Apache-2.0
 * Groups of ranks (see job_groups.h).
 */
#include "show/job_groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "read/rank/folder.h"
#include "read/rank/rank.h"

struct item {
	const struct job_part *part;
	size_t index;
};

static int by_deed(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c;

	if (x->part->role != y->part->role)
		return x->part->role < y->part->role ? -1 : 1;
	c = strcmp(x->part->did, y->part->did);
	if (c)
		return c;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_size(const void *a, const void *b)
{
	const struct job_group *x = a, *y = b;

	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->example < y->example ? -1 : x->example > y->example;
}

static bool same_deed(const struct item *a, const struct item *b)
{
	return a->part->role == b->part->role && !strcmp(a->part->did, b->part->did);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* What a rank did, said of several: "each lost the connection to its peers". */
static const char *did_each(const struct job_part *part, struct pool *pool)
{
	if (part->deed)
		return pool_printf(pool, "each %s", part->did);
	if (str_starts(part->did, "its "))
		return pool_printf(pool, "each one's %s", part->did + strlen("its "));
	return part->did;
}

static struct job_group group_of(const struct job_answer *a, const struct item *item, size_t n, struct pool *pool)
{
	struct job_group g = {.role = item->part->role,
			      .did = n > 1 ? did_each(item->part, pool) : item->part->did,
			      .deed = item->part->deed,
			      .at = item->part->at,
			      .n = n,
			      .example = item->index};

	g.rank = pool_alloc(pool, (n + 1) * sizeof(*g.rank));
	g.member = pool_alloc(pool, (n + 1) * sizeof(*g.member));
	for (size_t i = 0; i < n; i++) {
		uint32_t rank = a->attempt->rank[item[i].index].rank;

		g.member[i] = item[i].index;
		if (rank != JOB_UNKNOWN)
			g.rank[g.n_ranks++] = rank;
		if (!same_text(g.at, item[i].part->at))
			g.at = NULL;
	}
	return g;
}

size_t job_groups(const struct job_answer *a, struct job_group **list, struct pool *pool)
{
	size_t n = a->attempt->n, used = 0, end;
	struct item *item = xcalloc(n + 1, sizeof(*item));

	*list = pool_alloc(pool, (n + 1) * sizeof(**list));
	for (size_t i = 0; i < n; i++)
		item[i] = (struct item){&a->part[i], i};
	xsort(item, n, sizeof(*item), by_deed);
	for (size_t i = 0; i < n; i = end) {
		for (end = i; end < n && same_deed(&item[i], &item[end]); end++)
			;
		(*list)[used++] = group_of(a, &item[i], end - i, pool);
	}
	xsort(*list, used, sizeof(**list), by_size);
	free(item);
	return used;
}
