/* SPDX-License-Identifier: Apache-2.0
 * Compares the collectives of all ranks (see collectives.h).
 */
#include "find/job/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/job/clocks.h"
#include "read/rank/rank.h"

const struct job_comm *job_comm_of(const struct job_rank *r, const char *comm)
{
	for (size_t i = 0; i < r->n_comms; i++)
		if (!strcmp(r->comm[i].id, comm))
			return &r->comm[i];
	return NULL;
}

const struct job_call *job_call_of(const struct job_rank *r, const char *comm, uint64_t seq)
{
	const struct job_comm *c = job_comm_of(r, comm);

	for (size_t i = 0; c && i < c->n_calls; i++)
		if (c->call[i].seq == seq)
			return &c->call[i];
	return NULL;
}

struct claim {			/* what a rank says about a call: the call itself, or the digest up to there */
	const char *comm;
	uint64_t seq, value;
	size_t rank;
};

struct claims {
	struct claim *list;
	size_t n, room;
};

static uint64_t mix(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211ull;
	return (h ^ 0xff) * 1099511628211ull;
}

static uint64_t call_value(const struct job_call *c)
{
	uint64_t h = mix(mix(14695981039346656037ull, c->op), c->type);

	return (h ^ c->count) * 1099511628211ull;
}

static void claim_add(struct claims *l, const char *comm, uint64_t seq, uint64_t value, size_t rank)
{
	l->list = xgrow(l->list, l->n, &l->room, sizeof(*l->list));
	l->list[l->n++] = (struct claim){comm, seq, value, rank};
}

static int by_claim(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int c;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	c = strcmp(x->comm, y->comm);
	if (c)
		return c;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static bool same_call(const struct claim *a, const struct claim *b)
{
	return a->seq == b->seq && !strcmp(a->comm, b->comm);
}

/* Of the claims [from, end) about one call: the value that more than half of the ranks have; false: there is none. */
static bool majority(const struct claim *list, size_t from, size_t end, uint64_t *value)
{
	for (size_t i = from, k; i < end; i = k) {
		for (k = i; k < end && list[k].value == list[i].value; k++)
			;
		if ((k - i) * 2 > end - from) {
			*value = list[i].value;
			return true;
		}
	}
	return false;
}

static void fill_divergence(struct job_divergence *d, const struct claim *list, size_t from, size_t end)
{
	uint64_t value = 0;

	d->found = true;
	d->comm = list[from].comm;
	d->seq = list[from].seq;
	d->no_most = !majority(list, from, end, &value);
	d->odd = xcalloc(end - from, sizeof(*d->odd));
	for (size_t i = from; i < end; i++) {
		if (d->no_most || list[i].value != value)
			d->odd[d->n_odd++] = list[i].rank;
		else
			d->other = list[i].rank;
	}
	if (d->no_most)
		d->other = list[end - 1].rank;
}

/* The first call about which claims differ. */
static void first_difference(struct claims *l, struct job_divergence *d)
{
	size_t end;

	xsort(l->list, l->n, sizeof(*l->list), by_claim);
	for (size_t i = 0; i < l->n && !d->found; i = end) {
		for (end = i; end < l->n && same_call(&l->list[i], &l->list[end]); end++)
			;
		if (l->list[i].value != l->list[end - 1].value)
			fill_divergence(d, l->list, i, end);
	}
}

void job_find_divergence(struct job_divergence *d, const struct job_rank *rank, size_t n)
{
	struct claims calls = {0}, digests = {0};
	struct job_divergence by_digest = {0};

	*d = (struct job_divergence){0};
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rank[i].n_comms; k++) {
			const struct job_comm *c = &rank[i].comm[k];

			for (size_t s = 0; s < c->n_calls; s++)
				if (c->call[s].op)
					claim_add(&calls, c->id, c->call[s].seq, call_value(&c->call[s]), i);
			for (size_t s = 0; s < c->n_marks; s++)
				if (c->mark[s].digest)
					claim_add(&digests, c->id, c->mark[s].seq, c->mark[s].digest, i);
		}
	first_difference(&calls, d);
	first_difference(&digests, &by_digest);
	d->exact = d->found;
	if (by_digest.found && (!d->found || by_digest.seq < d->seq)) {
		job_divergence_free(d);
		*d = by_digest;
	} else {
		job_divergence_free(&by_digest);
	}
	free(calls.list);
	free(digests.list);
}

void job_divergence_free(struct job_divergence *d)
{
	free(d->odd);
	*d = (struct job_divergence){0};
}

struct member {			/* a rank in a communicator */
	const char *comm;
	uint64_t called;
	size_t rank;
};

static int by_member(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int c = strcmp(x->comm, y->comm);

	if (c)
		return c;
	if (x->called != y->called)
		return x->called < y->called ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static size_t members_of(struct member **to, const struct job_rank *rank, size_t n)
{
	struct member *list = NULL;
	size_t used = 0, room = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rank[i].n_comms; k++) {
			list = xgrow(list, used, &room, sizeof(*list));
			list[used++] = (struct member){rank[i].comm[k].id, rank[i].comm[k].called, i};
		}
	xsort(list, used, sizeof(*list), by_member);
	*to = list;
	return used;
}

static size_t end_of_comm(const struct member *list, size_t n, size_t from)
{
	size_t end = from;

	while (end < n && !strcmp(list[from].comm, list[end].comm))
		end++;
	return end;
}

static void absent_add(struct job_absent *a, const struct member *m, size_t waiter)
{
	size_t n = a->n + 1;

	a->rank = xrealloc(a->rank, n, sizeof(*a->rank));
	a->comm = xrealloc(a->comm, n, sizeof(*a->comm));
	a->seq = xrealloc(a->seq, n, sizeof(*a->seq));
	a->waiter = xrealloc(a->waiter, n, sizeof(*a->waiter));
	a->rank[a->n] = m->rank;
	a->comm[a->n] = m->comm;
	a->seq[a->n] = m->called + 1;
	a->waiter[a->n++] = waiter;
}

static bool is_absent(const struct job_absent *a, size_t rank)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->rank[i] == rank)
			return true;
	return false;
}

#define WITNESSES 8	/* that are asked */

/* A rank that had called more than `list[at]`, provably before the file of that one was written; SIZE_MAX = none. Of those that called
 * more, the ones that called least are the earliest. */
static size_t witness_of(const struct member *list, size_t at, size_t end, const struct job_rank *rank,
			 struct job_clocks *clocks)
{
	const struct job_rank *late = &rank[list[at].rank];
	size_t asked = 0;

	for (size_t i = at + 1; i < end && asked < WITNESSES; i++) {
		const struct job_comm *c = job_comm_of(&rank[list[i].rank], list[i].comm);

		if (list[i].called == list[at].called || !c->called_ns)
			continue;
		if (job_clocks_before(clocks, list[i].rank, c->called_ns, list[at].rank, late->written_ns))
			return list[i].rank;
		asked++;
	}
	return SIZE_MAX;
}

/* Of the members [from, end) of a communicator, the first that is known to have called least. */
static size_t lowest_of(const struct member *list, size_t from, size_t end, const struct job_rank *rank,
			struct job_clocks *clocks)
{
	size_t low = from;

	while (low < end && job_rank_is_snapshot(&rank[list[low].rank]) &&
	       witness_of(list, low, end, rank, clocks) == SIZE_MAX)
		low++;
	return low;
}

/* The ranks of a communicator that called least can go on; all others wait for them, if any rank waits at all. */
void job_find_absent(struct job_absent *a, const struct job_rank *rank, size_t n, struct job_clocks *clocks)
{
	struct member *list;
	size_t used = members_of(&list, rank, n), end, low;
	bool *waits = xcalloc(n + 1, sizeof(*waits));

	*a = (struct job_absent){0};
	for (size_t i = 0; i < used; i = end) {
		end = end_of_comm(list, used, i);
		low = lowest_of(list, i, end, rank, clocks);
		for (size_t k = low; k < end; k++) {
			const struct job_comm *c = job_comm_of(&rank[list[k].rank], list[k].comm);

			if (list[k].called > list[low].called && c->done < c->called)
				waits[list[k].rank] = true;
		}
	}
	for (size_t i = 0; i < used; i = end) {
		end = end_of_comm(list, used, i);
		low = lowest_of(list, i, end, rank, clocks);
		for (size_t k = low;
		     k < end && list[k].called == list[low].called && list[end - 1].called > list[low].called; k++) {
			bool runs = job_rank_is_snapshot(&rank[list[k].rank]);
			size_t waiter = runs ? witness_of(list, k, end, rank, clocks) : list[end - 1].rank;

			if (waiter != SIZE_MAX && !waits[list[k].rank] && waits[waiter] && !is_absent(a, list[k].rank))
				absent_add(a, &list[k], waiter);
		}
	}
	free(waits);
	free(list);
}

void job_absent_free(struct job_absent *a)
{
	free(a->rank);
	free(a->comm);
	free(a->seq);
	free(a->waiter);
	*a = (struct job_absent){0};
}
