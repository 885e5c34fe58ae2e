/* SPDX-License-Identifier: Apache-2.0
 * What the parts of a ledger and the kinds of tensors are called; detaching a ledger from its recording.
 */
#include "case/ledger.h"

#define LINES_KEPT 64

const char *ledger_part_id(enum ledger_part p)
{
#define X(name, id, text) id,
	static const char *const ids[] = {LEDGER_PARTS(X)};
#undef X
	return ids[p];
}

const char *ledger_part_text(enum ledger_part p)
{
#define X(name, id, text) text,
	static const char *const texts[] = {LEDGER_PARTS(X)};
#undef X
	return texts[p];
}

const char *ledger_kind_id(enum ledger_kind k)
{
#define X(name, id, text) id,
	static const char *const ids[] = {LEDGER_KINDS(X)};
#undef X
	return ids[k];
}

const char *ledger_kind_text(enum ledger_kind k)
{
#define X(name, id, text) text,
	static const char *const texts[] = {LEDGER_KINDS(X)};
#undef X
	return texts[k];
}

static void own_lines(struct ledger *l, const char *cwd, size_t most, struct pool *pool)
{
	struct ledger_line *lists[2] = {l->line, l->segments.pin};
	size_t n[2] = {l->n < most ? l->n : most, l->segments.n_pins};

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < n[k]; i++) {
			struct ledger_line *x = &lists[k][i];

			x->place.file = x->place.file ? pool_strdup(pool, file_shown(x->place.file, cwd)) : NULL;
			x->place.function = x->place.function ? pool_strdup(pool, x->place.function) : NULL;
			x->library = x->library ? pool_strdup(pool, x->library) : NULL;
			x->command = x->command ? pool_strdup(pool, x->command) : NULL;
		}
	l->n = n[0];
	l->device_name = pool_strdup(pool, l->device_name ? l->device_name : "");
}

void ledger_own(struct ledger *l, const char *cwd, struct pool *pool)
{
	own_lines(l, cwd, LINES_KEPT, pool);
}

void ledger_own_all(struct ledger *l, const char *cwd, struct pool *pool)
{
	own_lines(l, cwd, l->n, pool);
}
