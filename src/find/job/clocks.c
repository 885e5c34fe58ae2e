/* SPDX-License-Identifier: Apache-2.0
 * Bounds for the differences between the clocks of a job's machines (see clocks.h).
 */
#include "find/job/clocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/rank/rank.h"

struct moment {			/* a collective, as one rank saw it */
	const char *comm;
	uint64_t seq, in_ns, out_ns;
	size_t node;
};

struct apart {
	int64_t low, high;
};

struct job_clocks {
	size_t *node_of;	/* by rank */
	size_t n_nodes;
	struct moment *moment;	/* by collective and machine; one per machine */
	size_t n_moments;
	struct apart **from;	/* to all machines; NULL = not computed yet */
};

struct place {
	const char *boot;
	size_t rank;
};

static int by_boot(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return strcmp(x->boot, y->boot);
}

static void number_nodes(struct job_clocks *c, const struct job_rank *rank, size_t n)
{
	struct place *list = xcalloc(n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = (struct place){rank[i].boot, i};
	xsort(list, n, sizeof(*list), by_boot);
	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(list[i].boot, list[i - 1].boot) != 0)
			c->n_nodes++;
		c->node_of[list[i].rank] = c->n_nodes - 1;
	}
	free(list);
}

static int by_collective(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	int c = strcmp(x->comm, y->comm);

	if (c)
		return c;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static bool same_collective(const struct moment *a, const struct moment *b)
{
	return a->seq == b->seq && !strcmp(a->comm, b->comm);
}

/* The ranks of a machine have one clock: the moment lies within all of their times. */
static void merge_moments(struct job_clocks *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n_moments; i++) {
		struct moment *m = &c->moment[i], *last = kept ? &c->moment[kept - 1] : NULL;

		if (!last || last->node != m->node || !same_collective(last, m)) {
			c->moment[kept++] = *m;
			continue;
		}
		last->in_ns = m->in_ns > last->in_ns ? m->in_ns : last->in_ns;
		last->out_ns = m->out_ns < last->out_ns ? m->out_ns : last->out_ns;
	}
	c->n_moments = kept;
}

static void collect_moments(struct job_clocks *c, const struct job_rank *rank, size_t n)
{
	size_t room = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rank[i].n_comms; k++) {
			const struct job_comm *m = &rank[i].comm[k];

			for (size_t s = 0; s < m->n_marks; s++) {
				if (!m->mark[s].out_ns)
					continue;
				c->moment = xgrow(c->moment, c->n_moments, &room, sizeof(*c->moment));
				c->moment[c->n_moments++] = (struct moment){m->id, m->mark[s].seq, m->mark[s].in_ns,
									    m->mark[s].out_ns, c->node_of[i]};
			}
		}
	xsort(c->moment, c->n_moments, sizeof(*c->moment), by_collective);
	merge_moments(c);
}

struct job_clocks *job_clocks_new(const struct job_rank *rank, size_t n)
{
	struct job_clocks *c = xcalloc(1, sizeof(*c));

	c->node_of = xcalloc(n + 1, sizeof(*c->node_of));
	number_nodes(c, rank, n);
	collect_moments(c, rank, n);
	c->from = xcalloc(c->n_nodes + 1, sizeof(*c->from));
	return c;
}

void job_clocks_free(struct job_clocks *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_nodes; i++)
		free(c->from[i]);
	free(c->from);
	free(c->moment);
	free(c->node_of);
	free(c);
}

static void narrow(struct apart *a, const struct moment *x, const struct moment *y)
{
	int64_t low = (int64_t)x->in_ns - (int64_t)y->out_ns, high = (int64_t)x->out_ns - (int64_t)y->in_ns;

	a->low = low > a->low ? low : a->low;
	a->high = high < a->high ? high : a->high;
}

/* One pass over all collectives in which `node` took part. */
static struct apart *apart_from(struct job_clocks *c, size_t node)
{
	struct apart *to = xcalloc(c->n_nodes, sizeof(*to));
	size_t end;

	for (size_t i = 0; i < c->n_nodes; i++)
		to[i] = (struct apart){INT64_MIN, INT64_MAX};
	for (size_t i = 0; i < c->n_moments; i = end) {
		const struct moment *own = NULL;

		for (end = i; end < c->n_moments && same_collective(&c->moment[i], &c->moment[end]); end++)
			if (c->moment[end].node == node)
				own = &c->moment[end];
		for (size_t k = i; own && k < end; k++)
			narrow(&to[c->moment[k].node], own, &c->moment[k]);
	}
	to[node] = (struct apart){0, 0};
	return to;
}

bool job_clocks_apart(struct job_clocks *c, size_t a, size_t b, int64_t *low, int64_t *high)
{
	size_t x = c->node_of[a], y = c->node_of[b];

	if (!c->from[x])
		c->from[x] = apart_from(c, x);
	*low = c->from[x][y].low;
	*high = c->from[x][y].high;
	/* bounds that exclude each other: a clock was set, or a file is wrong */
	return *low != INT64_MIN && *low <= *high;
}

bool job_clocks_before(struct job_clocks *c, size_t a, uint64_t a_ns, size_t b, uint64_t b_ns)
{
	int64_t low, high;

	if (!a_ns || !b_ns || a_ns > INT64_MAX || b_ns > INT64_MAX || !job_clocks_apart(c, a, b, &low, &high))
		return false;
	return (int64_t)a_ns - (int64_t)b_ns < low;
}

size_t job_clocks_nodes(const struct job_clocks *c)
{
	return c->n_nodes;
}

size_t job_clocks_node(const struct job_clocks *c, size_t rank)
{
	return c->node_of[rank];
}
