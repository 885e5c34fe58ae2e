/* SPDX-License-Identifier: Apache-2.0
 * Which lines has backward run? (see lines_run.h)
 */
#include "find/memory/lines_run.h"

#include <stdlib.h>

#include "base/mem.h"
#include "find/memory/kinds.h"
#include "read/recording/trace_memory.h"

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void lines_run_find(struct lines_run *l, struct trace *t)
{
	const struct trace_node *node;
	size_t n = trace_nodes(t, &node);

	*l = (struct lines_run){xcalloc(n + 1, sizeof(*l->lines)), 0};
	for (size_t i = 0; i < n; i++)
		if (node[i].has_run)
			l->lines[l->n++] = lines_hash(t, node[i].stack);
	xsort(l->lines, l->n, sizeof(*l->lines), by_number);
}

void lines_run_release(struct lines_run *l)
{
	free(l->lines);
}

bool lines_were_run(const struct lines_run *l, uint64_t lines)
{
	return l->n && bsearch(&lines, l->lines, l->n, sizeof(*l->lines), by_number);
}
