/* SPDX-License-Identifier: Apache-2.0
 * What `cuwhy run --guard` found by itself: bytes behind an allocation that were written, bytes of one that were not.
 *
 * The hardware noticed nothing, so there is no core dump: what is left are the launches of kernels that had a pointer to the
 * allocation while it was live.
 */
#include <string.h>

#include "case/signature.h"
#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define LINES_MAX 8

const struct cw_guard *trace_guard(const struct trace *t)
{
	size_t len;
	const struct cw_guard *g = trace_chunk(t, CW_CHUNK_GUARD, &len);

	return g && len >= sizeof(*g) ? g : NULL;
}

struct user {
	struct place place;
	uint32_t func;
	uint32_t launches;
	bool stock;		/* a kernel of PyTorch's or NVIDIA's own */
};

struct users {
	struct user line[LINES_MAX];
	size_t n, own;
	bool more;		/* lines beyond the table */
};

static bool has_pointer(const struct cw_launch *l, uint64_t addr, uint64_t size)
{
	size_t n = l->n_param < CW_PARAM_BYTES ? l->n_param : CW_PARAM_BYTES;
	uint64_t word;

	for (size_t i = 0; i + 8 <= n; i += 8) {
		memcpy(&word, l->params + i, sizeof(word));
		if (word >= addr && word - addr < size)
			return true;
	}
	return false;
}

static void user_add(struct users *u, const struct trace *t, const struct cw_launch *l)
{
	const struct cw_function *f = l->func ? trace_function(t, l->func) : NULL;
	struct user *to = u->line;
	struct place p = {0};

	if (!place_of_stack(t, l->stack, &p) && !place_of_stack(t, l->forward_stack, &p))
		return;
	while (to < u->line + u->n && (to->place.line != p.line || strcmp(to->place.file, p.file) != 0))
		to++;
	if (to == u->line + LINES_MAX) {
		u->more = true;
		return;
	}
	if (to == u->line + u->n) {
		u->n++;
		*to = (struct user){.place = p, .func = l->func, .stock = true};
	}
	to->launches++;
	if (f && !f->stock)
		to->stock = false;
}

/* Kernels of PyTorch's own are tested by millions: if there are others, those come first. */
static void users_find(struct users *u, struct trace *t, const struct cw_failure *f)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l);

	for (size_t i = n; i > 0; i--)
		if (l[i - 1]->ticks >= f->arg[CW_GUARD_ARG_ticks] && l[i - 1]->ticks <= f->ticks &&
		    has_pointer(l[i - 1], f->arg[CW_GUARD_ARG_addr], f->arg[CW_GUARD_ARG_size]))
			user_add(u, t, l[i - 1]);
	for (size_t i = 0; i < u->n; i++)
		u->own += !u->line[i].stock;
}

static void tell_users(struct casefile *c, struct trace *t, const struct users *u)
{
	c->suspects = pool_alloc(c->pool, (u->n + 1) * sizeof(*c->suspects));
	for (size_t i = 0; i < u->n; i++) {
		const struct user *x = &u->line[i];

		if (u->own && x->stock)
			continue;
		c->suspects[c->n_suspects].line = line_of_place(c, t, &x->place);
		c->suspects[c->n_suspects].kernel =
			case_keep(c, kernel_short_name(trace_function_name(t, x->func), c->pool));
		c->suspects[c->n_suspects++].launches = x->launches;
	}
}

static void set_line(struct casefile *c, enum fact_id id, const struct trace *t, uint32_t stack)
{
	struct place p;

	if (place_of_stack(t, stack, &p))
		fact_set_text(c, id, pool_printf(c->pool, "%s:%u", file_shown(p.file, trace_header(t)->cwd), p.line));
}

static void slack_users(struct casefile *c, struct trace *t, const struct cw_failure *f, struct scene *s)
{
	struct users u = {.n = 0};
	size_t lines;

	users_find(&u, t, f);
	lines = u.own ? u.own : u.n;
	fact_set_number(c, FACT_guard_lines, (double)lines);
	tell_users(c, t, &u);
	if (c->n_suspects != 1 || u.more)
		return;
	fact_set_text(c, FACT_guard_kernel, c->suspects[0].kernel);
	for (size_t i = 0; i < u.n; i++)
		if (!u.own || !u.line[i].stock)
			s->where = u.line[i].place;
	c->n_suspects = 0;
}

void observe_guard(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s)
{
	const struct cw_failure *f = incident_from(i, CW_SRC_GUARD);

	fact_set_flag(c, FACT_guard_is, trace_guard(t) != NULL);
	fact_set_text(c, FACT_guard_found, f ? f->what : "");
	if (trace_guard(t))
		fact_set_number(c, FACT_guard_extra, (double)trace_guard(t)->extra);
	if (!f)
		return;
	fact_set_number(c, FACT_guard_size, (double)f->arg[CW_GUARD_ARG_size]);
	fact_set_number(c, FACT_guard_from, (double)f->arg[CW_GUARD_ARG_from]);
	fact_set_number(c, FACT_guard_to, (double)(f->arg[CW_GUARD_ARG_from] + f->arg[CW_GUARD_ARG_bytes] - 1));
	fact_set_number(c, FACT_guard_bytes, (double)f->arg[CW_GUARD_ARG_bytes]);
	fact_set_number(c, FACT_guard_others, (double)f->arg[CW_GUARD_ARG_others]);
	if (!strcmp(f->what, CW_GUARD_UNINITIALIZED))	/* older recordings do not say */
		fact_set_flag(c, FACT_guard_given, f->n_args <= CW_GUARD_ARG_given || f->arg[CW_GUARD_ARG_given]);
	fact_set_flag(c, FACT_guard_torch, f->arg[CW_GUARD_ARG_torch] != 0);
	set_line(c, FACT_guard_made, t, f->stack ? f->stack : f->forward_stack);
	set_line(c, FACT_guard_noticed, t, (uint32_t)f->arg[CW_GUARD_ARG_noticed]);
	if (!strcmp(f->what, CW_GUARD_SLACK))
		slack_users(c, t, f, s);
}
