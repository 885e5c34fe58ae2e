/* SPDX-License-Identifier: Apache-2.0
 * Adds up what sites held in each epoch, by kind (see over_time.h).
 */
#include "find/memory/over_time.h"

#include "find/memory/kinds.h"
#include "read/recording/trace_memory.h"

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void begin_columns(struct over_time *o, const struct cw_epoch *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		o->column[i] = (struct over_column){ .begin = e[i].begin, .at = e[i].at, .untold = e[i].allocated,
			.cache = less(e[i].reserved, e[i].allocated),
			.libraries = less(e[i].driver, e[i].reserved > e[i].allocated ? e[i].reserved : e[i].allocated)};
	o->n = n;
}

static void column_add(struct over_column *c, enum ledger_kind kind, uint64_t bytes)
{
	bytes = bytes < c->untold ? bytes : c->untold;
	c->kind[kind] += bytes;
	c->untold -= bytes;
}

static void column_add_site(struct over_time *o, struct kinds *k, size_t site, const struct cw_epoch *e)
{
	enum ledger_kind kind = kinds_of_site(k, site);
	uint64_t held[CW_EPOCHS], gradients;

	if (!trace_site_held(k->trace, site, held))
		return;
	for (size_t i = 0; i < o->n; i++) {
		gradients = kind == KIND_BACKWARD ? gradients_among(e, held, i) : 0;
		column_add(&o->column[i], KIND_GRADIENTS, gradients);
		column_add(&o->column[i], kind, held[i] - gradients);
	}
}

/* PyTorch marks blocks as workspaces, not sites: live ones have been workspaces since they were allocated. */
static void move_workspace(struct over_time *o, struct kinds *k, const struct piece *workspace, uint64_t when)
{
	enum ledger_kind kind = kinds_of_site(k, workspace->site);
	uint64_t held[CW_EPOCHS];

	if (!trace_site_held(k->trace, workspace->site, held))
		return;
	for (size_t i = 0; i < o->n; i++) {
		uint64_t bytes = workspace->size < held[i] ? workspace->size : held[i];
		struct over_column *c = &o->column[i];

		if (c->at < workspace->ticks || c->at > when)
			continue;
		bytes = bytes < c->kind[kind] ? bytes : c->kind[kind];
		c->kind[kind] -= bytes;
		c->kind[KIND_WORKSPACES] += bytes;
	}
}

/* The ledger's own figures are placed at its moment; epochs that start later follow it. */
static void put_ledger(struct over_time *o, const struct ledger *l, uint64_t ticks)
{
	struct over_column c = { .begin = ticks, .at = ticks, .libraries = l->part[PART_LIBRARIES], .ledger = true,
				.cache = l->part[PART_CACHE_USED] + l->part[PART_CACHE_FREE] + l->part[PART_POOLS]};
	size_t at = o->n;

	for (int i = 0; i < KIND_COUNT; i++)
		c.kind[i] = l->kind[i];
	for (; at > 0 && o->column[at - 1].begin >= ticks; at--)
		o->column[at] = o->column[at - 1];
	o->column[at] = c;
	o->n++;
}

static uint64_t column_end(struct trace *t, const struct over_time *o, int device)
{
	uint64_t end = trace_header(t)->clock1.ticks, last = o->column[o->n - 1].at;
	const struct cw_sample *s;
	size_t n;

	trace_timeline(t, device, &s, &n);
	if (n && s[n - 1].ticks > end)
		end = s[n - 1].ticks;
	return end > last ? end : last + 1;
}

static void column_add_kinds(struct over_time *o, struct trace *t, int device, const struct cw_epoch *e,
			     const struct cw_failure *f, struct pool *pool)
{
	struct moment m;
	struct kinds k;

	moment_init(&m, t, f ? f->ticks : UINT64_MAX, device);
	kinds_init(&k, t, &m, ledger_in_backward(t, f), pool);
	for (size_t i = 1; i < k.n; i++)
		if (k.site[i].kind == CW_MEM_TORCH && k.site[i].device == device)
			column_add_site(o, &k, i, e);
	for (size_t i = 0; i < m.torch.n; i++)
		if (m.torch.list[i].workspace && m.torch.list[i].site && m.torch.list[i].site < k.n)
			move_workspace(o, &k, &m.torch.list[i], m.when);
	moment_free(&m);
}

void over_time_build(struct over_time *o, struct trace *t, int device, const struct ledger *l, struct pool *pool)
{
	const struct cw_failure *f = ledger_oom(t, device);
	enum ledger_at at = f ? LEDGER_OOM : LEDGER_END;
	const struct cw_epochs *epochs;
	const struct cw_epoch *e;
	struct ledger own;
	size_t n;

	*o = (struct over_time){0};
	epochs = trace_epochs(t, device, &e, &n);
	if (!n)
		return;
	o->lost = epochs->lost;
	o->column = pool_alloc(pool, (n + 1) * sizeof(*o->column));
	begin_columns(o, e, n);
	column_add_kinds(o, t, device, e, f, pool);
	if (!l || l->at != at)
		ledger_build(&own, t, device, at, f, NULL, pool);
	put_ledger(o, l && l->at == at ? l : &own, f ? f->ticks : column_end(t, o, device));
}

static void raise_to(uint64_t *a, uint64_t b)
{
	*a = b > *a ? b : *a;
}

struct cw_sample *over_time_samples(struct trace *t, int device, size_t most, size_t *n, struct pool *pool)
{
	const struct cw_sample *s;
	struct cw_sample *out;
	size_t all, each;

	trace_timeline(t, device, &s, &all);
	each = all / most + 1;
	out = pool_alloc(pool, (all / each + 1) * sizeof(*out));
	*n = 0;
	for (size_t i = 0; i < all; i += each) {
		struct cw_sample *o = &out[(*n)++];

		*o = s[i];
		for (size_t k = i + 1; k < i + each && k < all; k++) {
			raise_to(&o->allocated, s[k].allocated);
			raise_to(&o->reserved, s[k].reserved);
			raise_to(&o->driver, s[k].driver);
		}
	}
	return out;
}
