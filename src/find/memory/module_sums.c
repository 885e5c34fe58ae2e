/* SPDX-License-Identifier: Apache-2.0
 * Adds up a ledger's tensors by module (see module_sums.h). What no module is known for is an entry of its own, so that the sum is that of
 * all tensors.
 */
#include "find/memory/module_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/recording/modules.h"

void module_sums_begin(struct module_sums *s, const struct trace *t)
{
	s->n = trace_modules(t) + 1;
	s->of = xcalloc(s->n, sizeof(*s->of));
}

void module_sums_add(struct module_sums *s, uint32_t module, enum ledger_kind kind, uint64_t bytes)
{
	s->of[module < s->n ? module : 0].kind[kind] += bytes;
}

static uint64_t bytes_of(const struct module_sum *s)
{
	uint64_t sum = 0;

	for (int k = 0; k < KIND_COUNT; k++)
		sum += s->kind[k];
	return sum;
}

static void add_to(struct ledger_module *to, const struct ledger_module *from)
{
	to->bytes += from->bytes;
	for (int k = 0; k < KIND_COUNT; k++)
		to->kind[k] += from->kind[k];
}

static int row_order(const struct ledger_module *x, const struct ledger_module *y)
{
	int c = (!x->path) - (!y->path);

	if (c || !x->path)
		return c;
	c = strcmp(x->root, y->root);
	c = c ? c : strcmp(x->path, y->path);
	return c;
}

static int by_path(const void *a, const void *b)
{
	return row_order(a, b);
}

static int by_bytes(const void *a, const void *b)
{
	const struct ledger_module *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return row_order(x, y);
}

static struct ledger_module row_of(const struct module_sums *s, uint32_t module, const struct trace *t, struct pool *pool)
{
	struct ledger_module r = {.bytes = bytes_of(&s->of[module])};
	struct module_path path;

	memcpy(r.kind, s->of[module].kind, sizeof(r.kind));
	if (module && r.bytes && trace_module_path(t, module, &path, pool)) {
		r.path = path.path;
		r.class_name = path.class_name;
		r.root = path.root;
	}
	return r;
}

void module_sums_end(struct module_sums *s, struct ledger *l, const struct trace *t, struct pool *pool)
{
	struct ledger_module *row = xcalloc(s->n, sizeof(*row));
	const char *root = NULL;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		row[n] = row_of(s, (uint32_t)i, t, pool);
		n += row[n].bytes > 0;
	}
	xsort(row, n, sizeof(*row), by_path);
	for (size_t i = 0; i < n; i++)
		if (kept && row_order(&row[kept - 1], &row[i]) == 0)
			add_to(&row[kept - 1], &row[i]);
		else
			row[kept++] = row[i];
	xsort(row, kept, sizeof(*row), by_bytes);
	l->module = pool_alloc(pool, (kept + 1) * sizeof(*l->module));
	l->n_modules = kept;
	for (size_t i = 0; i < kept; i++) {
		l->module[i] = row[i];
		l->modules_known += row[i].path ? row[i].bytes : 0;
		if (row[i].path && root && strcmp(root, row[i].root) != 0)
			l->several_roots = true;
		root = row[i].path ? row[i].root : root;
	}
	free(row);
	free(s->of);
	*s = (struct module_sums){0};
}
