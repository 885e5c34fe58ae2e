/* SPDX-License-Identifier: Apache-2.0
 * Facts about what is older than the history of a snapshot (see snap_old.h).
 */
#include "find/memory/snap_old.h"

#include <stdlib.h>

#include "base/mem.h"
#include "find/failure/place.h"
#include "find/memory/kinds.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"

/* A line, with all that called it and that it calls: what else it allocates on the way is another matter. */
struct of_line { struct place place; uint64_t lines, old, old_bytes, again; };

/* A program has a model and its optimizer once, however many tensors they are. */
static bool may_pile_up(enum ledger_kind kind)
{
	return kind == KIND_OTHER || kind == KIND_ACTIVATIONS;
}

static int by_lines(const void *a, const void *b)
{
	const struct of_line *x = a, *y = b;

	return x->lines < y->lines ? -1 : x->lines > y->lines;
}

/* Blocks of the same line become one. Returns how many are left. */
static size_t add_up(struct of_line *list, size_t n)
{
	size_t lines = 0;

	xsort(list, n, sizeof(*list), by_lines);
	for (size_t i = 0; i < n; i++) {
		if (!lines || list[lines - 1].lines != list[i].lines) {
			list[lines++] = list[i];
			continue;
		}
		list[lines - 1].old += list[i].old;
		list[lines - 1].old_bytes += list[i].old_bytes;
		list[lines - 1].again += list[i].again;
	}
	return lines;
}

static uint64_t freed_of(struct trace *t, struct kinds *k, uint64_t lines)
{
	const struct cw_freed *const *freed;
	uint64_t count = 0;

	for (size_t i = trace_freed(t, &freed); i > 0; i--) {
		struct piece p = piece_of_freed(t, freed[i - 1]);

		count += p.stack && kinds_about(k, &p)->lines == lines;
	}
	return count;
}

static void observe_line(struct casefile *c, struct trace *t, struct kinds *k, const struct of_line *l)
{
	fact_set_text(c, FACT_snapshot_old_line,
		      pool_printf(c->pool, "%s:%u", file_shown(l->place.file, trace_header(t)->cwd), l->place.line));
	fact_set_number(c, FACT_snapshot_old_count, (double)l->old);
	fact_set_number(c, FACT_snapshot_old_bytes, (double)l->old_bytes);
	fact_set_number(c, FACT_snapshot_old_again, (double)l->again);
	fact_set_number(c, FACT_snapshot_old_freed, (double)freed_of(t, k, l->lines));
}

void snap_old_observe(struct casefile *c, struct trace *t, const struct cw_failure *f)
{
	const struct of_line *most = NULL;
	struct of_line *list;
	struct moment m;
	struct kinds k;
	bool cut = false;
	size_t n = 0;

	moment_init(&m, t, f->ticks, 0);
	kinds_init(&k, t, &m, false, c->pool);
	list = xcalloc(m.torch.n + 1, sizeof(*list));
	for (size_t i = 0; i < m.torch.n; i++) {
		const struct piece *p = &m.torch.list[i];
		const struct about *about;

		cut |= p->stack && !p->ticks;
		if (!p->stack || !may_pile_up(kinds_of(&k, p)))
			continue;
		about = kinds_about(&k, p);
		if (about->place.file)
			list[n++] = (struct of_line){about->place, about->lines, p->ticks == 0,
						     p->ticks == 0 ? p->size : 0, p->ticks != 0};
	}
	n = add_up(list, n);
	for (size_t i = 0; i < n; i++)
		if (list[i].old && (!most || list[i].old_bytes > most->old_bytes))
			most = &list[i];
	fact_set_flag(c, FACT_snapshot_cut, cut);
	if (most)
		observe_line(c, t, &k, most);
	free(list);
	moment_free(&m);
}
