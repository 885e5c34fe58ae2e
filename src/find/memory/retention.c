/* SPDX-License-Identifier: Apache-2.0
 * Finds autograd graphs that pile up, and lines at which live memory grows (see retention.h), where no turns of loops were
 * recorded: leftovers.c knows more.
 *
 * Activations belong to the current forward pass, and backward frees them. Those of earlier passes are there
 * because something holds their graph. Where no backward has run since, passes are told apart by their lines: one pass
 * runs each of its lines at least once, so the live count of the rarest line is the number of passes.
 */
#include "find/failure/place.h"
#include "find/memory/retention.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/memory/kinds.h"
#include "read/recording/trace_memory.h"

struct mark { uint64_t ticks; bool backward; };

static int by_newest(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	return x->ticks > y->ticks ? -1 : x->ticks < y->ticks;
}

static size_t collect_marks(struct mark **marks, const struct moment *m, struct kinds *k)
{
	const struct cw_freed *const *f;
	size_t freed = trace_freed(k->trace, &f), n = 0;
	struct mark *list = xcalloc(m->torch.n + freed + 1, sizeof(*list));

	for (size_t i = 0; i < m->torch.n; i++)
		list[n++] = (struct mark){m->torch.list[i].ticks, kinds_about(k, &m->torch.list[i])->backward};
	for (size_t i = 0; i < freed; i++) {
		struct piece p = { .stack = f[i]->stack, .forward_stack = f[i]->forward_stack, .kind = f[i]->kind,
				  .device = f[i]->device};

		if (p.kind == CW_MEM_TORCH && p.device == m->device && f[i]->made_ticks <= m->when)
			list[n++] = (struct mark){f[i]->made_ticks, kinds_about(k, &p)->backward};
	}
	xsort(list, n, sizeof(*list), by_newest);
	*marks = list;
	return n;
}

/* Where earlier backward passes ended, newest first. The table of freed blocks goes back a few passes; everything older counts as one. */
struct passes { uint64_t *end; size_t n; };

static void passes_by_backward(struct passes *p, const struct moment *m, struct kinds *k, bool in_backward)
{
	struct mark *mark;
	size_t n = collect_marks(&mark, m, k), i = 0;

	*p = (struct passes){.end = xcalloc(n + 1, sizeof(*p->end))};
	while (in_backward && i < n && mark[i].backward)
		i++;
	while (i < n) {
		while (i < n && !mark[i].backward)
			i++;
		if (i < n)
			p->end[p->n++] = mark[i].ticks;
		while (i < n && mark[i].backward)
			i++;
	}
	free(mark);
}

/* 0 = the current pass, 1 = the one before it, ... */
static size_t pass_of(const struct passes *p, uint64_t ticks)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->end[middle] > ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct pile {			/* activations of one line, and of the lines that called it */
	uint64_t lines;			/* lines_hash */
	uint32_t stack;
	size_t pass;			/* of the oldest one that was added */
	uint64_t old_bytes, old_passes;	/* of passes before the current one */
	uint64_t count, bytes;		/* of the current pass */
	bool runs;			/* backward has run nodes of this stack */
};

struct piles { struct pile *list; size_t n, cap; };

static int by_stack(const void *a, const void *b)
{
	const struct pile *x = a, *y = b;

	return x->lines < y->lines ? -1 : x->lines > y->lines;
}

static int by_stack_and_pass(const void *a, const void *b)
{
	const struct pile *x = a, *y = b;
	int c = by_stack(a, b);

	return c ? c : x->pass < y->pass ? -1 : x->pass > y->pass;
}

static void join_piles(struct piles *p)
{
	size_t n = 0;

	xsort(p->list, p->n, sizeof(*p->list), by_stack_and_pass);
	for (size_t i = 0; i < p->n; i++) {
		struct pile one = p->list[i], *to = n ? &p->list[n - 1] : NULL;

		if (!to || to->lines != one.lines) {
			p->list[n++] = one;
			continue;
		}
		to->old_passes += one.pass != to->pass;
		to->pass = one.pass;
		to->old_bytes += one.old_bytes;
		to->count += one.count;
		to->bytes += one.bytes;
	}
	p->n = n;
}

static void pile_up(struct piles *p, const struct moment *m, struct kinds *k, const struct passes *passes,
		    enum ledger_kind kind)
{
	for (size_t i = 0; i < m->torch.n; i++) {
		const struct piece *b = &m->torch.list[i];
		size_t pass = pass_of(passes, b->ticks);

		if (kinds_of(k, b) != kind)
			continue;
		p->list = xgrow(p->list, p->n, &p->cap, sizeof(*p->list));
		p->list[p->n++] = (struct pile){.lines = kinds_about(k, b)->lines,
						.stack = b->stack,
						.pass = pass,
						.old_passes = pass > 0,
						.old_bytes = pass ? b->size : 0,
						.count = !pass,
						.bytes = pass ? 0 : b->size};
	}
	join_piles(p);
}

static void mark_run(struct piles *p, const struct trace *t, const struct trace_node *node, size_t n)
{
	for (size_t i = 0; i < n && p->n; i++) {
		struct pile want = {.lines = node[i].has_run ? lines_hash(t, node[i].stack) : 0};
		struct pile *to = node[i].has_run ? bsearch(&want, p->list, p->n, sizeof(want), by_stack) : NULL;

		if (to)
			to->runs = true;
	}
}

/* Lines whose nodes were run hold activations of the current pass. Of how many passes are the others? Returns the stack that holds the
 * most. */
static uint32_t count_rounds(struct retention *r, const struct piles *p)
{
	uint64_t least = UINT64_MAX, newer = 0, most = 0;
	uint32_t stack = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct pile *x = &p->list[i];
		uint64_t held = x->old_bytes + (x->runs ? 0 : x->bytes);

		if (!x->runs && x->count) {
			least = x->count < least ? x->count : least;
			newer += x->bytes;
		}
		r->kept += x->old_bytes;
		r->kept_run += x->runs ? x->old_bytes : 0;
		if (held > most) {
			most = held;
			stack = x->stack;
			r->rounds = x->old_passes + (x->count > 0);
		}
	}
	if (least != UINT64_MAX && least > 1) {
		r->kept += newer / least * (least - 1);
		r->rounds = least > r->rounds ? least : r->rounds;
	}
	return stack;
}

struct ends { uint32_t stack; uint64_t times; };
#define ENDS_MAX 64

static void count_end(struct ends *e, size_t *n, uint32_t stack)
{
	for (size_t i = 0; i < *n; i++)
		if (e[i].stack == stack) {
			e[i].times++;
			return;
		}
	if (*n < ENDS_MAX)
		e[(*n)++] = (struct ends){stack, 1};
}

/* The length of the shortest sequence that, repeated, gives the whole list; the last repetition may be incomplete. */
static size_t period_of(const uint64_t *list, size_t n)
{
	size_t *border = xcalloc(n + 1, sizeof(*border)), k = 0, p;

	for (size_t i = 1; i < n; i++) {
		while (k && list[i] != list[k])
			k = border[k - 1];
		k += list[i] == list[k];
		border[i] = k;
	}
	p = n - border[n - 1];
	free(border);
	return p;
}

/* The nodes that were not run, back to one that was: passes that repeat, each with a graph of its own. */
static uint32_t last_node(const struct trace *t, const struct trace_node *node, size_t n)
{
	uint64_t *lines = xcalloc(n + 1, sizeof(*lines));
	struct ends ends[ENDS_MAX];
	size_t n_ends = 0, best = 0, end;

	for (size_t i = 0; i < n; i = end + 1) {
		size_t period;

		for (end = i; end < n && !node[end].has_run && node[end].tid == node[i].tid; end++)
			lines[end] = lines_hash(t, node[end].stack);
		period = end > i ? period_of(lines + i, end - i) : 0;
		for (size_t k = i + period; period && k <= end; k += period)
			count_end(ends, &n_ends, node[k - 1].stack);
		if (end < n && !node[end].has_run && end > i)
			end--;	/* another thread's: it begins there */
	}
	for (size_t i = 1; i < n_ends; i++)
		if (ends[i].times > ends[best].times)
			best = i;
	free(lines);
	return n_ends ? ends[best].stack : 0;
}

static void find_graphs(struct retention *r, struct trace *t, const struct moment *m, struct kinds *k,
			const struct passes *passes)
{
	const struct trace_node *node;
	size_t n = trace_nodes(t, &node);
	struct piles piles = {0};

	pile_up(&piles, m, k, passes, KIND_ACTIVATIONS);
	mark_run(&piles, t, node, n);
	place_of_stack(t, count_rounds(r, &piles), &r->most);
	place_of_stack(t, last_node(t, node, n), &r->last);
	free(piles.list);
}

void retention_find(struct retention *r, struct trace *t, const struct ledger *l, const struct cw_failure *f,
		    struct pool *pool)
{
	const struct cw_header *h = trace_header(t);
	bool in_backward = failure_in_backward(t, f);
	struct passes passes;
	struct moment m;
	struct kinds k;

	*r = (struct retention){.known = h->n_nodes > 0, .nodes = h->n_nodes, .nodes_run = h->n_nodes_run};
	moment_init(&m, t, l->ticks, l->device);
	kinds_init(&k, t, &m, in_backward, pool);
	passes_by_backward(&passes, &m, &k, in_backward);
	if (r->known)
		find_graphs(r, t, &m, &k, &passes);
	free(passes.end);
	moment_free(&m);
}

#define GROWTH_LEAST 8		/* times the line must have run */
#define SOON_NS 1000000000ull

/* Most of what the line ever allocated is still there, the line ran until the end, and the program did other work in between. (A program
 * that only fills the GPU frees nothing either.) */
static bool grows(const struct ledger_line *x, const struct ledger *l, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	uint64_t end = l->ticks == UINT64_MAX ? h->clock1.ticks : l->ticks;
	uint64_t span = x->last_ticks - x->first_ticks;
	bool until_the_end = end - x->last_ticks <= span / 4 || trace_ns(t, end) - trace_ns(t, x->last_ticks) < SOON_NS;

	return x->part == PART_TENSORS && x->place.file && x->count >= GROWTH_LEAST && x->made &&
	       x->count * 2 >= x->made && span && until_the_end && h->n_blocks_freed >= x->count;
}

const struct ledger_line *growth_find(const struct ledger *l, struct trace *t, const struct retention *r)
{
	for (size_t i = 0; i < l->n; i++) {	/* biggest first */
		const struct ledger_line *x = &l->line[i];
		bool kept = x->kind == KIND_ACTIVATIONS && r->nodes_run && r->rounds >= 3 &&
			    place_same(&x->place, &r->most);

		if ((x->kind == KIND_OTHER || kept) && grows(x, l, t))
			return x;
	}
	return NULL;
}
