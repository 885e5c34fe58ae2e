/* SPDX-License-Identifier: Apache-2.0
 * Adds up modules that differ only in numbers (see module_groups.h).
 */
#include "case/module_groups.h"

#include <ctype.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/str.h"

const char *module_name_shown(const struct ledger *l, const struct ledger_module *m, struct pool *pool)
{
	if (!m->path)
		return NULL;
	if (!m->path[0])
		return m->class_name;
	return l->several_roots ? pool_printf(pool, "%s: %s", m->root, m->path) : m->path;
}

/* "h.7.mlp" becomes "h.*.mlp". */
static char *without_numbers(const char *name, struct pool *pool)
{
	char *to = pool_strdup(pool, name), *put = to;

	for (const char *from = name; *from;) {
		size_t n = strcspn(from, "."), digits = strspn(from, "0123456789");

		if (n && digits == n) {
			*put++ = '*';
		} else {
			memmove(put, from, n);
			put += n;
		}
		from += n;
		if (*from)
			*put++ = *from++;
	}
	*put = '\0';
	return to;
}

static int by_name(const void *a, const void *b)
{
	const struct module_group *x = a, *y = b;

	if (!x->name || !y->name)
		return (!x->name) - (!y->name);
	return strcmp(x->name, y->name);
}

static int by_bytes(const void *a, const void *b)
{
	const struct module_group *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_name(a, b);
}

static void add_to(struct module_group *to, const struct module_group *from)
{
	to->modules += from->modules;
	to->bytes += from->bytes;
	for (int k = 0; k < KIND_COUNT; k++)
		to->kind[k] += from->kind[k];
}

/* One that is alone keeps its number. */
static const char *name_of_one(const struct ledger *l, const struct module_group *g, struct pool *pool)
{
	for (size_t i = 0; i < l->n_modules; i++) {
		const char *name = module_name_shown(l, &l->module[i], pool);

		if (name && l->module[i].bytes == g->bytes && !strcmp(without_numbers(name, pool), g->name))
			return name;
	}
	return g->name;
}

size_t module_groups(struct module_group **list, const struct ledger *l, struct pool *pool)
{
	struct module_group *g = pool_alloc(pool, (l->n_modules + 1) * sizeof(*g));
	size_t n = 0;

	for (size_t i = 0; i < l->n_modules; i++) {
		const char *name = module_name_shown(l, &l->module[i], pool);

		g[i] = (struct module_group){
			.name = name ? without_numbers(name, pool) : NULL, .modules = 1, .bytes = l->module[i].bytes};
		memcpy(g[i].kind, l->module[i].kind, sizeof(g[i].kind));
	}
	xsort(g, l->n_modules, sizeof(*g), by_name);
	for (size_t i = 0; i < l->n_modules; i++)
		if (n && by_name(&g[n - 1], &g[i]) == 0)
			add_to(&g[n - 1], &g[i]);
		else
			g[n++] = g[i];
	for (size_t i = 0; i < n; i++)
		if (g[i].name && g[i].modules == 1)
			g[i].name = name_of_one(l, &g[i], pool);
	xsort(g, n, sizeof(*g), by_bytes);
	*list = g;
	return n;
}

const char *module_kinds_words(const uint64_t kind[KIND_COUNT], struct pool *pool)
{
	bool told[KIND_COUNT] = {0};
	const char *words = "";
	char text[32];
	size_t n = 0;

	for (int k = 0; k < KIND_COUNT; k++)
		n += kind[k] > 0;
	for (size_t i = 0; i < n; i++) {
		int most = -1;

		for (int k = 0; k < KIND_COUNT; k++)
			if (kind[k] && !told[k] && (most < 0 || kind[k] > kind[most]))
				most = k;
		told[most] = true;
		words = pool_printf(pool, "%s%s%s%s%s", words, str_if(i, ", "),
				    ledger_kind_text((enum ledger_kind)most), str_if(n > 1, " "),
				    n > 1 ? format_bytes(text, sizeof(text), (double)kind[most]) : "");
	}
	return words;
}
