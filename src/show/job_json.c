/* SPDX-License-Identifier: Apache-2.0
 * The answer about a job, as JSON (docs/json.md).
 */
#include "base/json.h"
#include "read/rank/folder.h"
#include "find/job/order.h"
#include "read/rank/rank.h"
#include "show/job_groups.h"
#include "show/job_report.h"

#define GROUPS_MAX 1000

static json_t *numbers(const uint32_t *list, size_t n)
{
	json_t *o = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(o, json_integer(list[i]));
	return o;
}

static json_t *texts(const char *const *list, size_t n)
{
	json_t *o = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(o, json_text(list[i]));
	return o;
}

static json_t *first_json(const struct job_answer *a, size_t i)
{
	const struct job_rank *r = &a->attempt->rank[i];

	return JSON_OF(J_INT_OR_NULL("rank", r->rank != JOB_UNKNOWN, r->rank), J_TEXT("node", r->node),
		       J_INT("pid", r->pid), J_TEXT("cause", r->cause), J_TEXT("certainty", r->sure),
		       J_TEXT("did", a->part[i].did), J_TEXT("at", a->part[i].at), J_TEXT("because", r->because),
		       J_TEXT("exception", r->exception), J_TEXT("message", r->message),
		       J_INT_OR_NULL("exit", r->exit_known && r->exit >= 0, r->exit),
		       J_INT_OR_NULL("signal", r->signal, r->signal), J_TEXT("verdict", r->verdict));
}

static json_t *rank_json(const struct job_answer *a, size_t i)
{
	const struct job_rank *r = &a->attempt->rank[i];
	const struct job_part *p = &a->part[i];
	const struct job_rank *of = p->of < a->attempt->n ? &a->attempt->rank[p->of] : NULL;

	return JSON_OF(J_INT_OR_NULL("rank", r->rank != JOB_UNKNOWN, r->rank), J_TEXT("node", r->node),
		       J_INT("pid", r->pid), J_TEXT("role", job_roles[p->role]), J_TEXT("did", p->did),
		       J_TEXT("at", p->at), J_IF(of && of->rank != JOB_UNKNOWN, J_INT("victim_of", of->rank)),
		       J_IF(r->cause, J_TEXT("cause", r->cause)));
}

static json_t *groups_json(const struct job_answer *a)
{
	struct pool p = {0};
	struct job_group *list;
	size_t n = job_groups(a, &list, &p);
	json_t *o = json_array();

	for (size_t i = 0; i < n && i < GROUPS_MAX; i++)
		json_array_append_new(o, JSON_OF(J_TEXT("role", job_roles[list[i].role]), J_TEXT("did", list[i].did),
						 J_TEXT("at", list[i].at), J_INT("count", list[i].n),
					      J_TEXT("ranks", job_ranges(&p, list[i].rank, list[i].n_ranks, SIZE_MAX))));
	pool_release(&p);
	return o;
}

static json_t *answer_json(const struct job_answer *a)
{
	json_t *first = json_array();

	for (size_t i = 0; i < a->n_first; i++)
		json_array_append_new(first, first_json(a, a->first[i]));
	return JSON_OF(J_INT("attempt", a->attempt->attempt), J_INT("requeue", a->attempt->requeue),
		       J_TEXT("title", a->title), J_TEXT("cause", job_cause(a)), J_TEXT("how", job_hows[a->how]),
		       J_BOOL("ordered", a->ordered), J_VALUE("first", first),
		       J_VALUE("because", texts(a->because, a->n_because)));
}

json_t *job_json(const struct job *j, struct job_answer *const *answer)
{
	const struct job_answer *a = answer[j->n_attempts - 1];
	json_t *o = JSON_OF(J_INT("schema", 1), J_TEXT("job", j->id)), *ranks = json_array(), *attempts = json_array();

	json_object_update_new(o, answer_json(a));
	for (size_t i = 0; i < a->attempt->n; i++)
		json_array_append_new(ranks, rank_json(a, i));
	for (size_t i = 0; i + 1 < j->n_attempts; i++)
		json_array_append_new(attempts, answer_json(answer[i]));
	JSON_ADD(o, J_INT_OR_NULL("world", a->world != JOB_UNKNOWN, a->world), J_INT("nodes", a->n_nodes),
		 J_VALUE("missing", numbers(a->missing, a->n_missing)), J_VALUE("groups", groups_json(a)),
		 J_VALUE("ranks", ranks), J_VALUE("earlier", attempts), J_INT("files_damaged", a->attempt->n_damaged),
		 J_INT("files_foreign", a->attempt->n_foreign), J_INT("files_older", a->attempt->n_older),
		 J_INT("files_twice", a->attempt->n_twice),
		 J_VALUE("other_jobs", texts(j->other, j->n_others)));
	return o;
}
