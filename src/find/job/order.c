/* SPDX-License-Identifier: Apache-2.0
 * Who failed first (see order.h).
 */
#include "find/job/order.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/str.h"
#include "find/job/clocks.h"
#include "find/job/collectives.h"
#include "read/rank/folder.h"
#include "read/rank/rank.h"

#define BECAUSE_MAX 24
#define NOBODY	    SIZE_MAX

const char *const job_roles[] = {"fine", "first", "failed", "victim", "open", NULL};
const char *const job_hows[] = {"none",	  "failed",  "killed",	"diverged", "absent",
				"lost",	  "missing", "unknown", NULL};

/* How a rank ended, by itself. */
enum end {
	END_FINE,
	END_OWN,	/* a failure that needs no other rank */
	END_HURT,	/* it complains about its peers */
	END_ABORTED,	/* signal 6 without a word: PyTorch's watchdog ends a rank that way whose collective failed */
	END_TOLD,	/* it was asked to end */
	END_KILLED,
	END_OPEN,
};

struct story {
	struct job_answer *a;
	const struct job_rank *rank;
	size_t n;
	enum end *end;
	struct job_clocks *clocks;
	struct job_divergence divergence;
	struct job_absent absent;
	bool *origin;
	bool either;		/* those that never came to a collective may be right, and those that wait in it wrong */
	size_t late;		/* a rank that others wait for, while all of them still run; NOBODY: none */
};

const char *job_name(struct pool *pool, const struct job_rank *r)
{
	const char *on = r->node_known ? " on " : "", *node = r->node_known ? r->node : "";

	if (r->rank != JOB_UNKNOWN)
		return pool_printf(pool, "rank %u%s%s", r->rank, on, node);
	return pool_printf(pool, "process %u%s%s", r->pid, on, node);
}

const char *job_ranges(struct pool *pool, const uint32_t *number, size_t n, size_t max)
{
	struct buf b;
	const char *text;
	size_t ranges = 0, end;

	buf_init(&b, 1u << 16);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && number[end] == number[end - 1] + 1; end++)
			;
		if (ranges++ == max) {
			buf_printf(&b, " and %zu more", n - i);
			break;
		}
		buf_printf(&b, i ? ", %u" : "%u", number[i]);
		if (end - i > 1)
			buf_printf(&b, end - i > 2 ? "-%u" : ", %u", number[end - 1]);
	}
	text = pool_copy(pool, b.data ? b.data : "", b.len);
	buf_release(&b);
	return text;
}

static const char *number_text(struct pool *pool, uint64_t n)
{
	char text[40];

	return pool_strdup(pool, format_thousands(text, sizeof(text), (double)n));
}

const char *job_call_text(struct pool *pool, const struct job_call *c)
{
	const char *count, *line;

	if (!c || !c->op)
		return NULL;
	count = c->count ? pool_printf(pool, " of %s%s%s", number_text(pool, c->count), c->type ? " " : "",
				       c->type ? c->type : "")
			 : "";
	line = c->line ? pool_printf(pool, " at %s", c->line) : "";
	return pool_printf(pool, "%s%s%s", c->op, count, line);
}

static void because(struct story *s, const char *text)
{
	if (s->a->n_because < BECAUSE_MAX)
		s->a->because[s->a->n_because++] = text;
}

static const char *name_of(struct story *s, size_t i)
{
	return job_name(&s->a->pool, &s->rank[i]);
}

static bool has_failed(const struct job_rank *r)
{
	return r->cause || r->exception || (r->exit_known && (r->exit > 0 || r->signal)) || r->signal;
}

static bool waits_in_collective(const struct job_rank *r)
{
	for (size_t i = 0; i < r->n_comms; i++)
		if (r->comm[i].called > r->comm[i].done)
			return true;
	return false;
}

/* Causes that are said about the peers of a process, not about itself. */
static bool is_of_peers(const struct job_rank *r)
{
	return r->of_peers || r->victim_of ||
	       (r->cause && !r->own && (!strcmp(r->cause, "nccl-timeout") || !strcmp(r->cause, "nccl-rank-divergence")));
}

/* A recorded process that ends by itself says so: this one was ended by a signal that only its parent knows. */
static bool died_silently(const struct job_rank *r)
{
	return !r->exit_known && !r->signal && !r->exception && !r->cause && r->ended_ns;
}

static enum end end_of(const struct job_rank *r)
{
	if (r->own)
		return END_OWN;
	if (r->state != JOB_ENDED)
		return END_OPEN;
	if (is_of_peers(r))
		return END_HURT;
	if (r->signal == SIGKILL)
		return END_KILLED;
	if (!r->exception && (r->signal == SIGTERM || r->signal == SIGINT || r->signal == SIGHUP))
		return END_TOLD;
	if (died_silently(r))
		return END_KILLED;
	if (!r->exception && !r->cause && r->signal == SIGABRT && waits_in_collective(r))
		return END_ABORTED;
	return has_failed(r) ? END_OWN : END_FINE;
}

/* When an end is noticed depends on who watches: two supervisors may notice two ends in the wrong order. So an end has two times, between
 * which it happened. A process that was seen alive, noted a failure, or came to a collective, had not ended then. 0 = not known. */
static uint64_t alive_at(const struct job_rank *r)
{
	uint64_t at = r->alive_ns > r->started_ns ? r->alive_ns : r->started_ns;

	at = r->failed_ns > at ? r->failed_ns : at;
	for (size_t i = 0; i < r->n_comms; i++) {
		const struct job_comm *c = &r->comm[i];
		uint64_t mark = c->n_marks ? c->mark[c->n_marks - 1].out_ns : 0;

		at = c->called_ns > at ? c->called_ns : at;
		at = mark > at ? mark : at;
	}
	return at;
}

/* Proven, not likely. A process writes down when it failed; what one noted that was killed later is not why it ended. */
static bool before(struct story *s, size_t a, size_t b)
{
	const struct job_rank *x = &s->rank[a], *y = &s->rank[b];
	uint64_t by = x->failed_ns && s->end[a] != END_KILLED ? x->failed_ns : x->ended_ns;
	uint64_t after = y->failed_ns && s->end[b] != END_KILLED ? y->failed_ns : alive_at(y);

	return job_clocks_before(s->clocks, a, by, b, after);
}

/* A launcher ends the others after one has ended: what ended before that was ended by something else. */
static bool any_origin(const struct story *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->origin[i])
			return true;
	return false;
}

static bool any_end(const struct story *s, enum end end)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->end[i] == end)
			return true;
	return false;
}

/* May a launcher have killed `i` because `k` failed? Where their clocks are related, that takes a proof that `i` outlived the failure of `k`:
 * signal 9 is also what the kernel sends when memory runs out, and then `k` may be the consequence. Where nothing relates the clocks there is
 * no proof either way, and launchers kill more often than the kernel does. */
static bool killed_because_of(struct story *s, size_t i, size_t k)
{
	int64_t low, high;

	if (job_clocks_before(s->clocks, i, s->rank[i].ended_ns, k, alive_at(&s->rank[k])))
		return false;
	return before(s, k, i) || !job_clocks_apart(s->clocks, i, k, &low, &high);
}

/* Is the end of `i` a consequence of one that failed by itself, as far as can be known? */
static bool is_explained(struct story *s, size_t i)
{
	for (size_t k = 0; k < s->n; k++) {
		if (!s->origin[k] || k == i)
			continue;
		if (s->end[i] == END_KILLED ? killed_because_of(s, i, k) : !before(s, i, k))
			return true;
	}
	return false;
}

/* Is there a complaint that nothing explains so far? */
static bool complaint_left(struct story *s)
{
	for (size_t i = 0; i < s->n; i++)
		if ((s->end[i] == END_HURT || s->end[i] == END_ABORTED) && !is_explained(s, i))
			return true;
	return false;
}

/* A rank that failed by itself before it came to the call in question made the others diverge, not the reverse. */
static bool divergence_is_first(struct story *s)
{
	if (!s->divergence.found)
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->origin[i] && s->end[i] == END_OWN &&
		    !job_came_to(&s->rank[i], s->divergence.comm, s->divergence.seq))
			return false;
	return any_end(s, END_HURT) || any_end(s, END_ABORTED) || any_end(s, END_OPEN) || any_end(s, END_OWN);
}

static void only(struct story *s, const size_t *list, size_t n)
{
	memset(s->origin, 0, s->n * sizeof(*s->origin));
	for (size_t i = 0; i < n; i++)
		s->origin[list[i]] = true;
}

/* "call number 12 of communicator c1, all_reduce of 64 float32 at train.py:60" */
static const char *numbered_call(const struct story *s, size_t rank, const char *comm, uint64_t seq)
{
	struct pool *p = &s->a->pool;
	const char *call = job_call_text(p, job_call_of(&s->rank[rank], comm, seq));

	return pool_printf(p, "call number %s of communicator %s%s%s", number_text(p, seq), comm, str_if(call, ", "),
			   str_given(call));
}

/* The first of the calls that are still known that this rank made at another line than another one: from there on it may be ahead of it. */
static void tell_other_lines(struct story *s, size_t odd, size_t other, const char *comm)
{
	const struct job_comm *c = job_comm_of(&s->rank[odd], comm);
	struct pool *p = &s->a->pool;

	for (size_t i = 1; c && i < c->n_calls; i++) {
		const struct job_call *mine = &c->call[i], *theirs = job_call_of(&s->rank[other], comm, mine->seq);
		const struct job_call *last = job_call_of(&s->rank[other], comm, mine->seq - 1);

		if (!mine->line || !theirs || !theirs->line || !last || !last->line || !c->call[i - 1].line ||
		    strcmp(last->line, c->call[i - 1].line) != 0)
			return;
		if (strcmp(mine->line, theirs->line) != 0) {
			because(s, pool_printf(p, "call number %s was the first that %s made at another line: at %s, %s at %s",
					    number_text(p, mine->seq), name_of(s, odd), mine->line, name_of(s, other),
					    theirs->line));
			return;
		}
	}
}

/* The odd ones called one more. `d` has ranks of both sides if it is not known which side is wrong: the first of them is one that called it. */
static void tell_alone(struct story *s)
{
	const struct job_divergence *d = &s->divergence;
	struct pool *p = &s->a->pool;
	const char *odd = name_of(s, d->odd[0]), *other = name_of(s, d->other);

	if (d->other_comm)
		because(s, pool_printf(p, "%s waits in %s, and %s in %s: each waits for the other", odd,
				       numbered_call(s, d->odd[0], d->comm, d->seq), other,
				       numbered_call(s, d->other, d->other_comm, d->other_seq)));
	else
		because(s, pool_printf(p, "%s came to %s; %s had ended without an error, and without that call", odd,
				       numbered_call(s, d->odd[0], d->comm, d->seq), other));
	tell_other_lines(s, d->odd[0], d->other, d->comm);
	if (d->no_most)
		because(s, "neither side has a majority, so it is not known which one is wrong");
}

static void tell_divergence(struct story *s)
{
	const struct job_divergence *d = &s->divergence;
	struct pool *p = &s->a->pool;
	const char *odd = job_call_text(p, job_call_of(&s->rank[d->odd[0]], d->comm, d->seq));
	const char *most = job_call_text(p, job_call_of(&s->rank[d->other], d->comm, d->seq));

	if (odd && most)
		because(s, pool_printf(p, "%s called %s as number %s of communicator %s, %s called %s",
				       name_of(s, d->odd[0]), odd, number_text(p, d->seq), d->comm,
				       d->no_most ? name_of(s, d->other) : "the others", most));
	else
		because(s, pool_printf(p, "the calls of communicator %s differ, at number %s or before", d->comm,
				       number_text(p, d->seq)));
	if (d->no_most)
		because(s, "no call has a majority, so it is not known which rank is wrong");
}

static const char *doing_instead(struct pool *p, const struct job_rank *r)
{
	if (r->state == JOB_ENDED && !has_failed(r))
		return "had ended, without an error";
	return r->doing ? pool_printf(p, "was at %s", r->doing) : "did not record what it did instead";
}

static const char *call_waited_for(const struct story *s, const struct job_absent *a, size_t i)
{
	return numbered_call(s, a->waiter[i], a->comm[i], a->seq[i]);
}

static void tell_absent(struct story *s)
{
	const struct job_absent *a = &s->absent;
	struct pool *p = &s->a->pool;

	for (size_t i = 0; i < a->n && i < 4; i++) {
		const struct job_rank *r = &s->rank[a->rank[i]];

		because(s, pool_printf(p, "%s never came to %s; it %s", name_of(s, a->rank[i]),
				       call_waited_for(s, a, i), doing_instead(p, r)));
	}
	if (s->either)
		because(s, "most ranks did not make that call, so it is not known whether the others are late, or it was one too many");
}

/* One that is missing where most others are is to blame. Where few have come, they may have made a call too many. */
static void blame_absent(struct story *s)
{
	const struct job_absent *a = &s->absent;

	only(s, a->rank, a->n);
	for (size_t i = 0; i < a->n; i++)
		s->either |= !a->most[i];
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < s->n && !a->most[i]; k++)
			s->origin[k] |= job_came_to(&s->rank[k], a->comm[i], a->seq[i]);
}

/* A rank that complains about its peers itself was on its way to the call: it did not diverge. */
static void drop_complaining(struct story *s)
{
	struct job_absent *a = &s->absent;
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (s->end[a->rank[i]] == END_HURT)
			continue;
		a->rank[kept] = a->rank[i];
		a->comm[kept] = a->comm[i];
		a->seq[kept] = a->seq[i];
		a->most[kept] = a->most[i];
		a->waiter[kept++] = a->waiter[i];
	}
	a->n = kept;
}

/* How long the others had waited, at least, when the file of the absent one was written. */
static double waited_s(struct story *s, size_t i)
{
	const struct job_absent *a = &s->absent;
	const struct job_comm *c = job_comm_of(&s->rank[a->waiter[i]], a->comm[i]);
	int64_t low = 0, high;

	if (!c || !job_clocks_apart(s->clocks, a->waiter[i], a->rank[i], &low, &high))
		return 0;
	return (double)((int64_t)s->rank[a->rank[i]].written_ns + low - (int64_t)c->called_ns) / 1e9;
}

/* No rank complains: one that runs and has not come yet is late, not to blame. */
static void drop_late(struct story *s)
{
	struct job_absent *a = &s->absent;
	struct pool *p = &s->a->pool;
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct job_rank *r = &s->rank[a->rank[i]];
		const char *at = r->doing ? pool_printf(p, "; it was at %s", r->doing) : "";

		if (!job_rank_is_snapshot(r)) {
			a->rank[kept] = a->rank[i];
			a->comm[kept] = a->comm[i];
			a->seq[kept] = a->seq[i];
			a->most[kept] = a->most[i];
			a->waiter[kept++] = a->waiter[i];
			continue;
		}
		if (s->late == NOBODY)
			s->late = a->rank[i];
		because(s, pool_printf(p, "%s had not come to %s %.1f s after %s had gone that far%s",
				       name_of(s, a->rank[i]), call_waited_for(s, a, i), waited_s(s, i),
				       name_of(s, a->waiter[i]), at));
	}
	a->n = kept;
}

/* Ranks of machines on which nothing ended. */
static size_t add_lost(struct story *s)
{
	bool *ended = xcalloc(job_clocks_nodes(s->clocks) + 1, sizeof(*ended));
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->end[i] != END_OPEN)
			ended[job_clocks_node(s->clocks, i)] = true;
	for (size_t i = 0; i < s->n; i++) {
		s->origin[i] |= s->end[i] == END_OPEN && s->rank[i].rank != JOB_UNKNOWN &&
				!ended[job_clocks_node(s->clocks, i)];
		n += s->origin[i];
	}
	free(ended);
	return n;
}

static size_t add_open(struct story *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		s->origin[i] |= s->end[i] == END_OPEN && s->rank[i].rank != JOB_UNKNOWN;
		n += s->origin[i];
	}
	return n;
}

/* No rank failed by itself early enough: which one did not come, whose machine is gone, which was never there? */
/* A rank alone made a call that no other one can come to. */
static bool find_alone(struct story *s, bool stuck)
{
	bool *over = xcalloc(s->n + 1, sizeof(*over));
	struct job_divergence d;

	for (size_t i = 0; i < s->n; i++)
		over[i] = s->end[i] == END_FINE;
	job_find_alone(&d, s->rank, s->n, s->clocks, over, stuck);
	free(over);
	if (!d.found)
		return false;
	job_divergence_free(&s->divergence);
	s->divergence = d;
	tell_alone(s);
	only(s, d.odd, d.n_odd);
	return true;
}

static enum job_how find_silent(struct story *s)
{
	bool hurt = any_end(s, END_HURT) || any_end(s, END_ABORTED);

	memset(s->origin, 0, s->n * sizeof(*s->origin));
	if (hurt && add_lost(s))
		return HOW_LOST;
	if (find_alone(s, hurt))
		return HOW_DIVERGED;
	drop_complaining(s);
	if (!hurt)
		drop_late(s);
	/* if no rank complains, and ranks were told to end, the job was canceled wherever it was */
	if (s->absent.n && (hurt || !any_end(s, END_TOLD))) {
		blame_absent(s);
		tell_absent(s);
		return HOW_ABSENT;
	}
	if (hurt && s->a->n_missing)
		return HOW_MISSING;
	if (hurt && add_open(s))
		return HOW_LOST;
	for (size_t i = 0; i < s->n; i++)
		s->origin[i] = s->end[i] == END_HURT || s->end[i] == END_ABORTED;
	return hurt ? HOW_UNKNOWN : HOW_NOT;
}

static enum job_how find_origins(struct story *s)
{
	bool *mine;

	for (size_t i = 0; i < s->n; i++)
		s->origin[i] = s->end[i] == END_OWN;
	/* One killed by signal 9 is an origin unless a launcher may have done it. Of several, the ones that were not provably later. */
	mine = xcalloc(s->n + 1, sizeof(*mine));
	for (size_t i = 0; i < s->n; i++)
		mine[i] = s->end[i] == END_KILLED && !is_explained(s, i);
	for (size_t i = 0; i < s->n; i++)
		s->origin[i] |= mine[i];
	free(mine);
	if (divergence_is_first(s)) {
		tell_divergence(s);
		only(s, s->divergence.odd, s->divergence.n_odd);
		return HOW_DIVERGED;
	}
	if (any_origin(s) && !complaint_left(s))
		return HOW_FAILED;	/* or killed: find_first() knows which of them counts */
	if (any_origin(s))
		because(s, "ranks complained about a peer before any rank failed by itself");
	return find_silent(s);
}

static bool is_after_another(struct story *s, size_t i)
{
	for (size_t k = 0; k < s->n; k++)
		if (s->origin[k] && k != i && before(s, k, i))
			return true;
	return false;
}

static bool one_node(const struct story *s)
{
	for (size_t i = 1; i < s->a->n_first; i++)
		if (job_clocks_node(s->clocks, s->a->first[i]) != job_clocks_node(s->clocks, s->a->first[0]))
			return false;
	return s->a->n_first > 0;
}

static bool first_is(const struct story *s, enum end end)
{
	for (size_t i = 0; i < s->a->n_first; i++)
		if (s->end[s->a->first[i]] != end)
			return false;
	return true;
}

/* A rank whose file cannot be read may have failed before the first of the others. What collectives prove about a rank that called another one
 * holds without it. */
static void doubt_unread(struct story *s)
{
	struct job_answer *a = s->a;
	struct pool *p = &a->pool;

	if (!a->n_unread || !a->ordered || a->how == HOW_DIVERGED || a->how == HOW_MISSING)
		return;
	a->ordered = false;
	because(s, pool_printf(p, "the file%s of rank%s %s cannot be read: %s may have failed before",
			       a->n_unread == 1 ? "" : "s", a->n_unread == 1 ? "" : "s",
			       job_ranges(p, a->unread, a->n_unread, 6), a->n_unread == 1 ? "it" : "one of them"));
}

static void find_first(struct story *s)
{
	bool by_time = s->a->how == HOW_FAILED;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		n += s->origin[i];
		if (s->origin[i] && (!by_time || !is_after_another(s, i)))
			s->a->first[s->a->n_first++] = i;
	}
	if (by_time && first_is(s, END_KILLED))
		s->a->how = HOW_KILLED;
	s->a->ordered = s->a->n_first == 1 || (s->a->how == HOW_LOST && one_node(s));
	if (s->a->how == HOW_UNKNOWN || s->either || (s->a->how == HOW_DIVERGED && s->divergence.no_most))
		s->a->ordered = false;
	if ((s->a->how == HOW_DIVERGED && !s->divergence.no_most) || (s->a->how == HOW_MISSING && s->a->n_missing == 1))
		s->a->ordered = true;
	if (n > 1 && by_time && s->a->n_first == 1)
		because(s, pool_printf(&s->a->pool, "%zu ranks failed on their own, all but this one provably later", n));
	doubt_unread(s);
}

static void tell_clocks(struct story *s)
{
	struct pool *p = &s->a->pool;
	int64_t low, high;
	size_t a, b;

	if (s->a->n_first < 2 || s->a->ordered || (s->a->how != HOW_FAILED && s->a->how != HOW_KILLED))
		return;
	a = s->a->first[0];
	b = s->a->first[1];
	if (job_clocks_node(s->clocks, a) == job_clocks_node(s->clocks, b))
		because(s, pool_printf(p, "%s and %s are on the same machine, but the times of their ends overlap",
				       name_of(s, a), name_of(s, b)));
	else if (job_clocks_apart(s->clocks, a, b, &low, &high))
		because(s, pool_printf(p, "the clocks of %s and %s are known to within %.3f s, and the failures are closer than that",
				       s->rank[a].node, s->rank[b].node, (double)(high - low) / 1e9));
	else
		because(s, pool_printf(p, "%s and %s share no collective, so it is not known how far their clocks differ",
				       s->rank[a].node, s->rank[b].node));
}

/* `*deed`: the words follow the name of the rank ("was killed"); false: they stand for themselves ("out of memory"). */
static const char *did_words(struct story *s, size_t i, bool *deed)
{
	static const char *const ends[] = {[END_FINE] = "ended well",
					   [END_OWN] = "failed",
					   [END_HURT] = "lost its peers",
					   [END_ABORTED] = "was aborted by signal 6 in a collective",
					   [END_TOLD] = NULL,
					   [END_KILLED] = "was killed by signal 9",
					   [END_OPEN] = "has no end in its file"};
	const struct job_rank *r = &s->rank[i];

	*deed = true;
	if (r->launcher && s->end[i] != END_OWN)
		return s->end[i] == END_FINE ? "ended well, having started ranks"
					     : "started ranks, and reported their failure";
	if (s->end[i] == END_OPEN && !r->node_known)
		return "was running when its collectives were dumped";
	if (s->end[i] == END_KILLED && !r->signal)
		return "was ended by a signal that only its parent knows";
	if (s->end[i] == END_TOLD)
		return pool_printf(&s->a->pool, "was ended by signal %d", r->signal);
	if (r->of_peers) {
		*deed = str_starts(r->of_peers, "it ");
		return *deed ? r->of_peers + strlen("it ") : r->of_peers;
	}
	*deed = s->end[i] == END_OWN && !r->title && !r->exception;
	if (*deed)
		return r->signal ? pool_printf(&s->a->pool, "died by signal %d", r->signal)
				 : pool_printf(&s->a->pool, "ended with status %d", r->exit);
	if (s->end[i] == END_OWN)
		return r->title	    ? r->title
		       : r->message ? pool_printf(&s->a->pool, "%s: %s", r->exception, r->message)
				    : r->exception;
	if (s->end[i] == END_HURT && r->title && !r->victim_of)
		return r->title;
	*deed = true;
	return ends[s->end[i]];
}

/* The collective that a rank was in, else its line. */
static const char *at_words(struct story *s, size_t i)
{
	const struct job_rank *r = &s->rank[i];
	struct pool *p = &s->a->pool;

	if (s->end[i] == END_FINE || (s->end[i] == END_OWN && r->where))
		return s->end[i] == END_FINE ? NULL : r->where;
	for (size_t k = 0; k < r->n_comms; k++) {
		const struct job_comm *c = &r->comm[k];
		const char *call;

		if (c->called <= c->done)
			continue;
		call = job_call_text(p, job_call_of(r, c->id, c->called));
		return pool_printf(p, "%s %s, number %s of communicator %s", c->done ? "in" : "last called",
				   call ? call : "a collective", number_text(p, c->called), c->id);
	}
	if (r->where || !r->doing)
		return r->where;
	return pool_printf(p, "last launch at %s", r->doing);
}

static size_t pid_on_node(const struct story *s, size_t of, uint32_t pid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->rank[i].pid == pid && job_clocks_node(s->clocks, i) == job_clocks_node(s->clocks, of))
			return i;
	return NOBODY;
}

static enum job_role role_of(const struct story *s, size_t i)
{
	if (s->end[i] == END_FINE)
		return ROLE_FINE;
	if (s->end[i] == END_OPEN)
		return ROLE_OPEN;
	if (s->rank[i].launcher)
		return ROLE_VICTIM;
	if (s->end[i] == END_OWN)
		return ROLE_FAILED;
	return ROLE_VICTIM;
}

static void tell_parts(struct story *s)
{
	struct job_answer *a = s->a;

	for (size_t i = 0; i < s->n; i++) {
		struct job_part *p = &a->part[i];

		p->role = role_of(s, i);
		p->of = NOBODY;
		if (p->role == ROLE_VICTIM && s->rank[i].victim_of)
			p->of = pid_on_node(s, i, s->rank[i].victim_of);
		if (p->role == ROLE_VICTIM && p->of == NOBODY && a->n_first == 1)
			p->of = a->first[0];
		p->did = did_words(s, i, &p->deed);
		p->at = at_words(s, i);
	}
	for (size_t i = 0; i < a->n_first; i++)
		a->part[a->first[i]].role = ROLE_FIRST;
	for (size_t i = 0; i < s->n; i++)
		a->n_role[a->part[i].role]++;
}

#define MISSING_MAX (1u << 20)

static void find_missing(struct job_answer *a, const struct job_rank *rank, size_t n)
{
	size_t i = 0;

	a->world = JOB_UNKNOWN;
	for (size_t k = 0; k < n; k++)
		if (rank[k].world != JOB_UNKNOWN && !rank[k].launcher &&
		    (a->world == JOB_UNKNOWN || rank[k].world > a->world))
			a->world = rank[k].world;
	if (a->world == JOB_UNKNOWN || a->world > MISSING_MAX)
		return;
	a->missing = pool_alloc(&a->pool, (a->world + 1) * sizeof(*a->missing));
	for (uint32_t r = 0; r < a->world; r++) {
		while (i < n && rank[i].rank < r)
			i++;
		if (i == n || rank[i].rank != r)
			a->missing[a->n_missing++] = r;
	}
}

static bool has_rank(const struct job_attempt *at, uint32_t rank)
{
	for (size_t i = 0; i < at->n; i++)
		if (at->rank[i].rank == rank)
			return true;
	return false;
}

/* Ranks that have files, but none that can be read. */
static void find_unread(struct job_answer *a, const struct job_attempt *at)
{
	a->unread = pool_alloc(&a->pool, (at->n_unread + 1) * sizeof(*a->unread));
	for (size_t i = 0; i < at->n_unread; i++) {
		uint32_t rank = at->unread[i];
		bool again = a->n_unread && a->unread[a->n_unread - 1] == rank;

		if (!again && (a->world == JOB_UNKNOWN || rank < a->world) && !has_rank(at, rank))
			a->unread[a->n_unread++] = rank;
	}
}

static const char *list_of(struct story *s, const size_t *list, size_t all)
{
	struct pool *p = &s->a->pool;
	uint32_t *number = pool_alloc(p, (all + 1) * sizeof(*number));
	size_t n = 0;

	for (size_t i = 0; i < all; i++)
		if (s->rank[list[i]].rank != JOB_UNKNOWN)
			number[n++] = s->rank[list[i]].rank;
	if (all == 1 || !n)
		return name_of(s, list[0]);
	return pool_printf(p, "ranks %s", job_ranges(p, number, n, 6));
}

static const char *list_first(struct story *s)
{
	return list_of(s, s->a->first, s->a->n_first);
}

/* Few wait, and the others never came. */
static const char *title_of_either(struct story *s)
{
	struct pool *p = &s->a->pool;
	size_t *waits = pool_alloc(p, (s->n + 1) * sizeof(*waits)), *late = pool_alloc(p, (s->n + 1) * sizeof(*late));
	size_t n_waits = 0, n_late = 0;

	for (size_t i = 0; i < s->a->n_first; i++) {
		size_t r = s->a->first[i];
		bool absent = false;

		for (size_t k = 0; k < s->absent.n; k++)
			absent |= s->absent.rank[k] == r;
		if (absent)
			late[n_late++] = r;
		else
			waits[n_waits++] = r;
	}
	return pool_printf(p, "%s never came to a collective that %s wait%s for; which one is wrong is not known",
			   list_of(s, late, n_late), list_of(s, waits, n_waits), n_waits == 1 ? "s" : "");
}

/* No rank failed by itself, as far as is known. */
static const char *title_of_none(struct story *s)
{
	const struct job_answer *a = s->a;
	size_t told = 0;

	for (size_t i = 0; i < s->n; i++)
		told += s->end[i] == END_TOLD;
	if (told)
		return told == s->n ? "every rank was ended from outside: canceled, out of time, or by a launcher"
				    : "ranks were ended from outside, and none failed before";
	if (s->late != NOBODY)
		return pool_printf(&s->a->pool, "nothing failed so far, but others wait for %s", name_of(s, s->late));
	if (a->n_missing && s->n)
		return pool_printf(&s->a->pool, "nothing failed in the %u of %u ranks that left a file",
				   a->world - (uint32_t)a->n_missing, a->world);
	return a->n_role[ROLE_OPEN] ? "nothing failed so far" : "nothing failed";
}

/* They, or it, failed or were killed. */
static const char *title_of_failed(struct story *s, const char *who)
{
	struct job_answer *a = s->a;
	struct pool *p = &a->pool;
	const struct job_rank *r = &s->rank[a->first[0]];
	bool deed;

	if (a->n_first > 1)
		return pool_printf(p, "%s %s first is not known", who,
				   a->how == HOW_KILLED	    ? "were killed; which was killed"
				   : first_is(s, END_OWN) ? "failed on their own; which failed"
							  : "failed or were killed; which was");
	if (a->how == HOW_KILLED && !a->ordered)
		return pool_printf(p, "%s was killed by %s, but may not have been the first to end", who,
				   r->signal ? "signal 9" : "a signal");
	if (a->how == HOW_KILLED)
		return pool_printf(
			p, r->signal ? "%s was killed first, by signal 9" : "%s was the first to be ended by a signal",
			who);
	return pool_printf(p, a->ordered ? "%s failed first: %s" : "%s failed, but may not have been the first: %s",
			   who, did_words(s, a->first[0], &deed));
}

static const char *title_of(struct story *s)
{
	struct job_answer *a = s->a;
	struct pool *p = &a->pool;
	const struct job_rank *r = a->n_first ? &s->rank[a->first[0]] : NULL;
	const char *who = a->n_first ? list_first(s) : NULL;
	bool one = a->n_missing == 1;

	switch (a->how) {
	case HOW_FAILED:
	case HOW_KILLED:
		return title_of_failed(s, who);
	case HOW_DIVERGED:
		if (s->divergence.alone && !s->divergence.other_comm)
			return pool_printf(p, a->ordered ? "%s alone called a collective that no other rank came to"
					   : "%s did not call equally many collectives; which one is wrong is not known",
					   who);
		return pool_printf(p, a->ordered ? "%s called a different collective than the others"
					      : "%s called different collectives; which one is wrong is not known",
				   who);
	case HOW_ABSENT:
		return s->either ? title_of_either(s)
				 : pool_printf(p, "%s never came to a collective that the others wait for", who);
	case HOW_LOST:
		if (one_node(s) && r->node_known)
			return pool_printf(p, "node %s was lost or is stuck: %s never reported an end", r->node, who);
		return pool_printf(p, "%s never reported an end; which was lost first is not known", who);
	case HOW_MISSING:
		return pool_printf(p, "rank%s %s left no file that can be read, and the others lost contact with %s",
				   one ? "" : "s", job_ranges(p, a->missing, a->n_missing, 6), one ? "it" : "them");
	case HOW_UNKNOWN:
		return "ranks lost a peer, but which one failed first is not known";
	default:
		return title_of_none(s);
	}
}

/* Flight recorders and logs do not say where they are from. */
static size_t known_nodes(const struct story *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->rank[i].node_known)
			return 0;
	return job_clocks_nodes(s->clocks);
}

struct job_answer *job_judge(const struct job_attempt *at)
{
	struct job_answer *a = xcalloc(1, sizeof(*a));
	struct story s = {.a = a, .rank = at->rank, .n = at->n, .late = NOBODY};

	a->attempt = at;
	a->part = pool_alloc(&a->pool, (s.n + 1) * sizeof(*a->part));
	a->first = pool_alloc(&a->pool, (s.n + 1) * sizeof(*a->first));
	a->because = pool_alloc(&a->pool, BECAUSE_MAX * sizeof(*a->because));
	s.end = pool_alloc(&a->pool, (s.n + 1) * sizeof(*s.end));
	s.origin = pool_alloc(&a->pool, (s.n + 1) * sizeof(*s.origin));
	for (size_t i = 0; i < s.n; i++) {
		s.end[i] = end_of(&s.rank[i]);
		if (s.rank[i].launcher && s.end[i] == END_OWN && !s.rank[i].own)
			s.end[i] = END_HURT;	/* its status is that of what it started */
	}
	find_missing(a, s.rank, s.n);
	find_unread(a, at);
	s.clocks = job_clocks_new(s.rank, s.n);
	a->n_nodes = known_nodes(&s);
	job_find_divergence(&s.divergence, s.rank, s.n);
	job_find_absent(&s.absent, s.rank, s.n, s.clocks);
	a->how = find_origins(&s);
	if (a->how != HOW_NOT)
		find_first(&s);
	tell_clocks(&s);
	tell_parts(&s);
	a->title = title_of(&s);
	job_divergence_free(&s.divergence);
	job_absent_free(&s.absent);
	job_clocks_free(s.clocks);
	return a;
}

const char *job_cause(const struct job_answer *a)
{
	const char *cause = NULL;

	if (a->how == HOW_NOT)
		return "none";
	if (a->how == HOW_DIVERGED)
		return "nccl-rank-divergence";
	for (size_t i = 0; i < a->n_first; i++) {
		const char *own = a->attempt->rank[a->first[i]].cause;

		own = own ? own : "unknown";
		if (cause && strcmp(cause, own) != 0)
			return NULL;
		cause = own;
	}
	return cause ? cause : "unknown";
}

void job_answer_free(struct job_answer *a)
{
	if (!a)
		return;
	pool_release(&a->pool);
	free(a);
}
