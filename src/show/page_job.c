/* SPDX-License-Identifier: Apache-2.0
 * The page of a job (see page_job.h).
 *
 * Times are microseconds by the clock of the rank that failed first. What shared collectives prove about another machine's clock
 * leaves a range: an event is drawn in its middle, and the range goes with the machine (`low`, `high`). Where nothing is proven, the machine is
 * `loose`, and its events are where the machines' wall clocks put them.
 */
#include "show/page_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "find/job/clocks.h"
#include "read/rank/folder.h"
#include "find/job/order.h"
#include "read/rank/rank.h"
#include "show/job_groups.h"
#include "show/page_words.h"

#define RANGES_MAX	400
#define GROUPS_MAX	400
#define EARLIER_MAX	64
#define NS_MAX		((int64_t)10 * 366 * 86400 * 1000000000)	/* further away, a time is damaged */
#define NOT_LISTED	SIZE_MAX

struct place_in_time {
	int64_t shift, low, high;	/* to the clock of the first one */
	bool known, loose;
	size_t example;			/* a rank of the machine */
};

struct listing {
	const struct job *j;
	const struct job_answer *a;
	const struct job_rank *rank;
	size_t n;
	struct job_clocks *clocks;
	struct place_in_time *node;	/* by machine */
	size_t reference;		/* the rank whose clock is used */
	size_t *order, n_listed;	/* ranks that are listed */
	size_t *at;			/* where a rank is in that list; NOT_LISTED */
	size_t *group;			/* of each rank */
	struct page_words words;
};

static bool is_time(uint64_t ns)
{
	return ns && ns < INT64_MAX / 4;
}

/* From the machine's clock to the wall's. */
static bool wall_shift(const struct job_rank *r, int64_t *shift)
{
	if (!is_time(r->real_ns) || !is_time(r->written_ns))
		return false;
	*shift = (int64_t)r->real_ns - (int64_t)r->written_ns;
	return true;
}

static struct place_in_time place_of(struct listing *l, size_t i)
{
	struct place_in_time p = {.example = i};
	int64_t own, other;

	if (job_clocks_apart(l->clocks, l->reference, i, &p.low, &p.high) && p.low > -INT64_MAX / 4 &&
	    p.high < INT64_MAX / 4) {
		p.known = true;
		p.shift = p.low + (p.high - p.low) / 2;
	} else if (wall_shift(&l->rank[l->reference], &own) && wall_shift(&l->rank[i], &other)) {
		p.known = p.loose = true;
		p.shift = other - own;
	}
	return p;
}

static void place_nodes(struct listing *l)
{
	size_t n = job_clocks_nodes(l->clocks);
	bool *have = xcalloc(n + 1, sizeof(*have));

	l->node = xcalloc(n + 1, sizeof(*l->node));
	for (size_t i = 0; i < l->n; i++) {
		size_t node = job_clocks_node(l->clocks, i);

		if (!have[node])
			l->node[node] = place_of(l, i);
		have[node] = true;
	}
	free(have);
}

/* When the first one failed, or whatever else is known of it: times are relative to it. */
static uint64_t zero_of(const struct listing *l)
{
	const struct job_rank *r = &l->rank[l->reference];

	if (r->failed_ns)
		return r->failed_ns;
	if (r->ended_ns)
		return r->ended_ns;
	return r->written_ns ? r->written_ns : r->started_ns;
}

static void put_time(const struct listing *l, json_t *row, const char *key, size_t i, uint64_t ns)
{
	const struct place_in_time *p = &l->node[job_clocks_node(l->clocks, i)];
	int64_t us;

	if (!p->known || !is_time(ns) || !is_time(zero_of(l)))
		return;
	us = (int64_t)ns + p->shift - (int64_t)zero_of(l);
	if (us > -NS_MAX && us < NS_MAX)
		JSON_ADD(row, J_INT(key, us / 1000));
}

static json_t *nodes_json(const struct listing *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < job_clocks_nodes(l->clocks); i++) {
		const struct place_in_time *p = &l->node[i];
		const struct job_rank *r = &l->rank[p->example];

		json_array_append_new(list,
				      JSON_OF(J_TEXT("name", r->node_known ? r->node : NULL), J_BOOL("known", p->known),
					      J_BOOL("loose", p->loose),
					      J_INT("apart", p->known && !p->loose ? (p->high - p->low) / 1000 : 0)));
	}
	return list;
}

static void put_word(struct listing *l, json_t *row, const char *key, const char *text)
{
	int n = page_words_add(&l->words, text);

	if (n >= 0)
		JSON_ADD(row, J_INT(key, n));
}

static json_t *comms_json(struct listing *l, const struct job_rank *r, struct pool *pool)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_comms && i < JOB_COMMS_MAX; i++) {
		const struct job_comm *c = &r->comm[i];
		json_t *o = json_object();

		put_word(l, o, "id", c->id);
		JSON_ADD(o, J_INT("called", c->called), J_IF(c->done, J_INT("done", c->done)),
			 J_IF(c->size, J_INT("size", c->size)), J_IF(c->aborted, J_BOOL("aborted", true)));
		if (c->n_calls)
			put_word(l, o, "last", job_call_text(pool, &c->call[c->n_calls - 1]));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *rank_row(struct listing *l, size_t i)
{
	const struct job_rank *r = &l->rank[i];
	const struct job_part *part = &l->a->part[i];
	size_t of = part->of < l->n ? l->at[part->of] : NOT_LISTED;
	json_t *row = JSON_OF(J_IF(r->rank != JOB_UNKNOWN, J_INT("rank", r->rank)),
			      J_INT("node", job_clocks_node(l->clocks, i)), J_IF(r->pid, J_INT("pid", r->pid)),
			      J_TEXT("role", job_roles[part->role]), J_INT("group", l->group[i]),
			      J_IF(r->launcher, J_BOOL("launcher", true)),
			      J_IF(of != NOT_LISTED && part->role == ROLE_VICTIM, J_INT("of", of)),
		J_TEXT("state", job_states[r->state]), J_IF(r->exit_known && r->exit >= 0, J_INT("exit", r->exit)),
			      J_IF(r->signal, J_INT("signal", r->signal)));

	put_time(l, row, "start", i, r->started_ns);
	put_time(l, row, "failed", i, r->failed_ns);
	put_time(l, row, "ended", i, r->ended_ns);
	put_time(l, row, "seen", i, r->written_ns);
	put_word(l, row, "did", part->did);
	put_word(l, row, "at", part->at);
	put_word(l, row, "cause", r->cause);
	put_word(l, row, "sure", r->sure);
	return row;
}

/* Texts that may differ on every rank come after those that are needed most: the list of words may get full. */
static void put_details(struct listing *l, json_t *row, size_t i)
{
	const struct job_rank *r = &l->rank[i];
	struct pool pool = {0};

	put_word(l, row, "where", r->where);
	put_word(l, row, "doing", r->doing);
	put_word(l, row, "command", r->command);
	put_word(l, row, "title", r->title);
	put_word(l, row, "because", r->because);
	put_word(l, row, "exception", r->exception);
	if (r->n_comms)
		JSON_ADD(row, J_VALUE("comms", comms_json(l, r, &pool)));
	put_word(l, row, "file", r->verdict);
	put_word(l, row, "message", r->message);
	pool_release(&pool);
}

/* The first ones and those that failed by themselves, then the others. */
static void choose_ranks(struct listing *l)
{
	l->order = xcalloc(l->n + 1, sizeof(*l->order));
	l->at = xcalloc(l->n + 1, sizeof(*l->at));
	for (size_t i = 0; i < l->n; i++)
		l->at[i] = NOT_LISTED;
	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < l->n && l->n_listed < PAGE_RANKS_MAX; i++) {
			enum job_role role = l->a->part[i].role;

			if (l->at[i] != NOT_LISTED || (pass == 0 && role != ROLE_FIRST) ||
			    (pass == 1 && role != ROLE_FAILED))
				continue;
			l->at[i] = l->n_listed;
			l->order[l->n_listed++] = i;
		}
}

static json_t *ranks_json(struct listing *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n_listed; i++)
		json_array_append_new(list, rank_row(l, l->order[i]));
	for (size_t i = 0; i < l->n_listed; i++)
		put_details(l, json_array_get(list, i), l->order[i]);
	return list;
}

static json_t *groups_json(struct listing *l, struct pool *pool)
{
	struct job_group *group;
	size_t n = job_groups(l->a, &group, pool);
	json_t *list = json_array();

	l->group = xcalloc(l->n + 1, sizeof(*l->group));
	for (size_t i = 0; i < n; i++) {
		size_t at = i < GROUPS_MAX ? i : GROUPS_MAX;

		for (size_t k = 0; k < group[i].n; k++)
			l->group[group[i].member[k]] = at;
		if (i >= GROUPS_MAX)
			continue;
		json_array_append_new(
			list, JSON_OF(J_TEXT("role", job_roles[group[i].role]), J_TEXT("did", group[i].did),
				      J_TEXT("at", group[i].at), J_INT("count", group[i].n),
				      J_TEXT("ranks", job_ranges(pool, group[i].rank, group[i].n_ranks, RANGES_MAX))));
	}
	return list;
}

/* Of the first ones, of those that failed as well, then of one of each group of victims. */
static json_t *verdicts_json(const struct listing *l)
{
	json_t *list = json_array();
	size_t bytes = 0;
	bool *told = xcalloc(l->n + 1, sizeof(*told));

	for (size_t i = 0; i < l->n_listed && json_array_size(list) < PAGE_VERDICTS_MAX; i++) {
		size_t rank = l->order[i];
		bool victim = l->a->part[rank].role == ROLE_VICTIM;
		json_t *v = victim && told[l->group[rank]] ? NULL : job_verdict_read(l->j, l->a->attempt, &l->rank[rank]);
		size_t size;

		if (!v)
			continue;
		/* What the page does not show. */
		json_object_del(v, "memory");
		json_object_del(v, "others");
		json_object_del(v, "notes");
		json_object_del(v, "facts");
		size = json_dumpb(v, NULL, 0, JSON_COMPACT);
		if (bytes + size > PAGE_VERDICTS_BYTES) {
			json_decref(v);
			continue;
		}
		told[l->group[rank]] = true;
		bytes += size;
		json_array_append_new(list, JSON_OF(J_INT("of", i), J_VALUE("verdict", v)));
	}
	free(told);
	return list;
}

static json_t *earlier_json(const struct job *j, struct job_answer *const *answer)
{
	json_t *list = json_array();

	for (size_t i = j->n_attempts - 1; i-- > 0 && json_array_size(list) < EARLIER_MAX;)
		json_array_append_new(list, JSON_OF(J_INT("attempt", j->attempt[i].attempt),
						    J_INT("requeue", j->attempt[i].requeue),
						    J_TEXT("title", answer[i]->title)));
	return list;
}

static json_t *first_json(const struct listing *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->a->n_first; i++)
		if (l->at[l->a->first[i]] != NOT_LISTED)
			json_array_append_new(list, json_integer((json_int_t)l->at[l->a->first[i]]));
	return list;
}

static json_t *texts_json(const char *const *text, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_text(text[i]));
	return list;
}

static json_t *answer_json(struct listing *l, struct pool *pool)
{
	const struct job_answer *a = l->a;
	const struct job_attempt *at = a->attempt;
	json_t *groups = groups_json(l, pool), *ranks = ranks_json(l);

	return JSON_OF(J_TEXT("id", l->j->id), J_INT("attempt", at->attempt), J_INT("requeue", at->requeue),
		       J_TEXT("title", a->title), J_TEXT("cause", job_cause(a)), J_TEXT("how", job_hows[a->how]),
		       J_BOOL("ordered", a->ordered), J_VALUE("because", texts_json(a->because, a->n_because)),
		       J_INT_OR_NULL("world", a->world != JOB_UNKNOWN, a->world), J_INT("machines", a->n_nodes),
		       J_INT("missing", a->n_missing),
		       J_TEXT("missing_ranks", job_ranges(pool, a->missing, a->n_missing, RANGES_MAX)),
		       J_INT("processes", l->n), J_INT("damaged", at->n_damaged), J_INT("foreign", at->n_foreign),
		       J_INT("older", at->n_older), J_BOOL("too_many", at->too_many), J_INT("other_jobs", l->j->n_others),
		       J_VALUE("first", first_json(l)), J_VALUE("nodes", nodes_json(l)), J_VALUE("groups", groups),
		       J_VALUE("ranks", ranks), J_VALUE("verdicts", verdicts_json(l)), J_SHARED("words", l->words.list));
}

json_t *page_job_json(const struct job *j, struct job_answer *const *answer)
{
	const struct job_answer *a = answer[j->n_attempts - 1];
	struct listing l = {.j = j, .a = a, .rank = a->attempt->rank, .n = a->attempt->n};
	struct pool pool = {0};
	json_t *o;

	page_words_init(&l.words);
	l.clocks = job_clocks_new(l.rank, l.n);
	l.reference = a->n_first ? a->first[0] : 0;
	place_nodes(&l);
	choose_ranks(&l);
	o = answer_json(&l, &pool);
	JSON_ADD(o, J_VALUE("earlier", earlier_json(j, answer)));
	page_words_release(&l.words);
	job_clocks_free(l.clocks);
	free(l.node);
	free(l.order);
	free(l.at);
	free(l.group);
	pool_release(&pool);
	return o;
}
