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

bool job_came_to(const struct job_rank *r, const char *comm, uint64_t seq)
{
	const struct job_comm *c = job_comm_of(r, comm);

	return c && c->called >= seq;
}

struct claim {			/* what a rank says about a call: the call itself, or the digest up to there */
	const char *comm;
	uint64_t seq, value;
	size_t rank;
	uint32_t ranks;		/* of the communicator; 0 = not known */
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

static void claim_add(struct claims *l, const struct job_comm *c, uint64_t seq, uint64_t value, size_t rank)
{
	l->list = xgrow(l->list, l->n, &l->room, sizeof(*l->list));
	l->list[l->n++] = (struct claim){c->id, seq, value, rank, c->size};
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
	size_t ranks = end - from;

	for (size_t i = from; i < end; i++)
		ranks = list[i].ranks > ranks ? list[i].ranks : ranks;
	for (size_t i = from, k; i < end; i = k) {
		for (k = i; k < end && list[k].value == list[i].value; k++)
			;
		if ((k - i) * 2 > ranks) {
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
					claim_add(&calls, c, c->call[s].seq, call_value(&c->call[s]), i);
			for (size_t s = 0; s < c->n_marks; s++)
				if (c->mark[s].digest)
					claim_add(&digests, c, c->mark[s].seq, c->mark[s].digest, i);
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

static void absent_set(struct job_absent *a, size_t at, const struct member *m, size_t waiter, bool most)
{
	a->rank[at] = m->rank;
	a->comm[at] = m->comm;
	a->seq[at] = m->called + 1;
	a->waiter[at] = waiter;
	a->most[at] = most;
}

/* Once for each rank, where most of the others had come, if it is missing in several communicators. */
static void absent_add(struct job_absent *a, const struct member *m, size_t waiter, bool most)
{
	size_t n = a->n + 1;

	for (size_t i = 0; i < a->n; i++)
		if (a->rank[i] == m->rank) {
			if (most && !a->most[i])
				absent_set(a, i, m, waiter, most);
			return;
		}

	a->rank = xrealloc(a->rank, n, sizeof(*a->rank));
	a->comm = xrealloc(a->comm, n, sizeof(*a->comm));
	a->seq = xrealloc(a->seq, n, sizeof(*a->seq));
	a->waiter = xrealloc(a->waiter, n, sizeof(*a->waiter));
	a->most = xrealloc(a->most, n, sizeof(*a->most));
	absent_set(a, a->n++, m, waiter, most);
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

/* Of a communicator: its members in order of their calls, the first that is known to have called least, and the first that called more. */
struct gap {
	const struct member *list;
	size_t low, high, end;
	size_t ranks;		/* that it has, those without a file included */
};

static struct gap gap_of(const struct member *list, size_t from, size_t end, const struct job_rank *rank,
			 struct job_clocks *clocks)
{
	struct gap g = {list, lowest_of(list, from, end, rank, clocks), 0, end, end - from};

	for (size_t i = from; i < end; i++) {
		const struct job_comm *c = job_comm_of(&rank[list[i].rank], list[i].comm);

		g.ranks = c->size > g.ranks ? c->size : g.ranks;
	}
	for (g.high = g.low; g.high < end && list[g.high].called == list[g.low].called;)
		g.high++;
	return g;
}

static bool is_most(size_t n, size_t of)
{
	return n * 2 > of;
}

/* Its newest call is not known to have ended. */
static bool may_wait(const struct job_rank *r, const char *comm)
{
	const struct job_comm *c = job_comm_of(r, comm);

	return c && c->done < c->called;
}

/* The ranks of a communicator that called least can go on; all others wait for them, if any rank waits at all. */
void job_find_absent(struct job_absent *a, const struct job_rank *rank, size_t n, struct job_clocks *clocks)
{
	struct member *list;
	size_t used = members_of(&list, rank, n), end;
	bool *waits = xcalloc(n + 1, sizeof(*waits));

	*a = (struct job_absent){0};
	for (size_t i = 0; i < used; i = end) {
		struct gap g;

		end = end_of_comm(list, used, i);
		g = gap_of(list, i, end, rank, clocks);
		for (size_t k = g.high; k < end; k++)
			if (may_wait(&rank[list[k].rank], list[k].comm))
				waits[list[k].rank] = true;
	}
	for (size_t i = 0; i < used; i = end) {
		struct gap g;

		end = end_of_comm(list, used, i);
		g = gap_of(list, i, end, rank, clocks);
		for (size_t k = g.low; k < g.high && g.high < end; k++) {
			bool runs = job_rank_is_snapshot(&rank[list[k].rank]);
			size_t waiter = runs ? witness_of(list, k, end, rank, clocks) : list[end - 1].rank;

			if (waiter != SIZE_MAX && !waits[list[k].rank] && waits[waiter])
				absent_add(a, &list[k], waiter, is_most(end - g.high, g.ranks));
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
	free(a->most);
	*a = (struct job_absent){0};
}

struct sides {			/* the ranks of a communicator that disagree, by index */
	size_t *one, n_one, *two, n_two;
	size_t ranks;		/* that both together could be */
	const char *comm_one, *comm_two;
	uint64_t seq_one, seq_two;
};

static void sides_free(struct sides *s)
{
	free(s->one);
	free(s->two);
}

static struct sides sides_new(size_t room)
{
	return (struct sides){.one = xcalloc(room + 1, sizeof(size_t)), .two = xcalloc(room + 1, sizeof(size_t))};
}

/* The smaller side is odd if the other one is most of the ranks; if neither is, both may be. */
static void decide(struct job_divergence *d, const struct sides *s)
{
	bool one = is_most(s->n_two, s->ranks), two = is_most(s->n_one, s->ranks);

	*d = (struct job_divergence){.found = true, .alone = true, .exact = true, .no_most = !one && !two};
	d->odd = xcalloc(s->n_one + s->n_two, sizeof(*d->odd));
	for (size_t i = 0; i < s->n_one && !two; i++)
		d->odd[d->n_odd++] = s->one[i];
	for (size_t i = 0; i < s->n_two && !one; i++)
		d->odd[d->n_odd++] = s->two[i];
	d->comm = two ? s->comm_two : s->comm_one;
	d->seq = two ? s->seq_two : s->seq_one;
	d->other_comm = two ? s->comm_one : s->comm_two;
	d->other_seq = two ? s->seq_one : s->seq_two;
	d->other = two ? s->one[0] : s->two[0];
}

/* Some ranks made one more call than the others, which have all ended well. If those that made it are most, the others are absent. */
static bool others_are_over(struct job_divergence *d, const struct gap *g, const bool *over)
{
	struct sides s;
	bool waits = false;

	for (size_t i = g->low; i < g->high; i++)
		if (!over[g->list[i].rank])
			return false;
	for (size_t i = g->high; i < g->end; i++)
		waits |= !over[g->list[i].rank];
	if (!waits || is_most(g->end - g->high, g->ranks))
		return false;
	s = sides_new(g->end - g->low);
	s.ranks = g->ranks;
	s.comm_one = g->list[g->low].comm;
	s.seq_one = g->list[g->low].called + 1;
	for (size_t i = g->low; i < g->end; i++)
		if (i < g->high)
			s.two[s.n_two++] = g->list[i].rank;
		else
			s.one[s.n_one++] = g->list[i].rank;
	decide(d, &s);
	sides_free(&s);
	return true;
}

/* The communicators in which a rank is missing or others are: sorted by id, as the members are. */
struct gaps {
	struct gap *list;
	size_t n;
};

static const struct gap *gap_by_id(const struct gaps *all, const char *comm)
{
	size_t from = 0, end = all->n;

	while (from < end) {
		size_t mid = from + (end - from) / 2;
		int c = strcmp(all->list[mid].list[all->list[mid].low].comm, comm);

		if (c == 0)
			return &all->list[mid];
		if (c < 0)
			from = mid + 1;
		else
			end = mid;
	}
	return NULL;
}

/* Each rank that is in both communicators waits in one of them for those that wait in the other. */
static bool wait_for_each_other(struct sides *s, const struct gap *x, const struct gap *y, const struct job_rank *rank)
{
	s->comm_one = x->list[x->low].comm;
	s->comm_two = y->list[y->low].comm;
	s->seq_one = x->list[x->low].called + 1;
	s->seq_two = y->list[y->low].called + 1;
	s->ranks = x->ranks < y->ranks ? x->ranks : y->ranks;
	for (size_t i = x->low; i < x->end; i++) {
		const struct job_rank *r = &rank[x->list[i].rank];
		bool one = i >= x->high, two = job_came_to(r, s->comm_two, s->seq_two);

		if (!job_comm_of(r, s->comm_two))
			continue;
		if (one == two || job_rank_is_snapshot(r) || !may_wait(r, one ? s->comm_one : s->comm_two))
			return false;
		if (one)
			s->one[s->n_one++] = x->list[i].rank;
		else
			s->two[s->n_two++] = x->list[i].rank;
	}
	return s->n_one && s->n_two;
}

static bool same_odd(const struct job_divergence *a, const struct job_divergence *b)
{
	if (a->n_odd != b->n_odd)
		return false;
	for (size_t i = 0; i < a->n_odd; i++)
		if (a->odd[i] != b->odd[i])
			return false;
	return true;
}

/* Keeps what a majority says. False: two majorities contradict each other. */
static bool keep_better(struct job_divergence *d, struct job_divergence *next)
{
	bool agree = !d->found || d->no_most || next->no_most || same_odd(d, next);

	if (!d->found || (d->no_most && !next->no_most)) {
		struct job_divergence old = *d;

		*d = *next;
		*next = old;
	}
	job_divergence_free(next);
	return agree;
}

/* A rank that is missing in `x` waits in another communicator for ranks that wait in `x`. */
static bool find_crossed(struct job_divergence *d, const struct gaps *all, const struct gap *x,
			 const struct job_rank *rank)
{
	const struct job_rank *missing = &rank[x->list[x->low].rank];
	bool agree = true;

	for (size_t k = 0; k < missing->n_comms && agree; k++) {
		const struct gap *y = gap_by_id(all, missing->comm[k].id);
		struct job_divergence next;
		struct sides s;

		if (!y || y == x)
			continue;
		s = sides_new(x->end - x->low);
		if (wait_for_each_other(&s, x, y, rank)) {
			decide(&next, &s);
			agree = keep_better(d, &next);
		}
		sides_free(&s);
	}
	return agree;
}

void job_find_alone(struct job_divergence *d, const struct job_rank *rank, size_t n, struct job_clocks *clocks,
		    const bool *over, bool stuck)
{
	struct member *list;
	size_t used = members_of(&list, rank, n), end;
	struct gaps all = {.list = xcalloc(used + 1, sizeof(*all.list))};
	bool agree = true;

	*d = (struct job_divergence){0};
	for (size_t i = 0; i < used; i = end) {
		struct gap g;

		end = end_of_comm(list, used, i);
		g = gap_of(list, i, end, rank, clocks);
		if (g.low < g.high && g.high < g.end)
			all.list[all.n++] = g;
	}
	for (size_t i = 0; i < all.n && agree; i++) {
		struct job_divergence next;

		if (others_are_over(&next, &all.list[i], over))
			agree = keep_better(d, &next);
	}
	for (size_t i = 0; i < all.n && agree && stuck; i++)
		agree = find_crossed(d, &all, &all.list[i], rank);
	if (!agree)
		job_divergence_free(d);
	free(all.list);
	free(list);
}
