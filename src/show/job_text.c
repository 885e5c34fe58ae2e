/* SPDX-License-Identifier: Apache-2.0
 * The answer about a job, as text.
 */
#include <stdlib.h>

#include "base/format.h"
#include "read/rank/folder.h"
#include "find/job/order.h"
#include "read/rank/rank.h"
#include "show/job_groups.h"
#include "show/job_report.h"
#include "show/report.h"
#include "show/report_wrap.h"

#define GROUPS_SHOWN 12
#define RANGES_SHOWN 8
#define OTHERS_SHOWN 6

static const char *attempt_name(struct pool *p, const struct job_attempt *a)
{
	if (a->requeue)
		return pool_printf(p, "attempt %u.%u", a->requeue, a->attempt);
	return pool_printf(p, "attempt %u", a->attempt);
}

static const char *count(struct pool *p, size_t n)
{
	char text[40];

	return pool_strdup(p, format_thousands(text, sizeof(text), (double)n));
}

/* Of each first one: what happened, where. */
static void print_first(struct wrap *w, const struct job_answer *a, struct pool *p)
{
	for (size_t i = 0; i < a->n_first && i < OTHERS_SHOWN && a->how != HOW_UNKNOWN; i++) {
		const struct job_rank *r = &a->attempt->rank[a->first[i]];
		const struct job_part *part = &a->part[a->first[i]];

		wrap_label(w, a->ordered ? "first" : a->n_first == 1 ? "maybe" : "one of");
		if (r->pid)
			wrap_printf(w, part->deed ? "%s, process %u, %s" : "%s, process %u: %s", job_name(p, r), r->pid,
				    part->did);
		else
			wrap_printf(w, part->deed ? "%s %s" : "%s: %s", job_name(p, r), part->did);
		if (part->at)
			wrap_printf(w, "%s", part->at);
		if (r->because)
			wrap_printf(w, "because %s", r->because);
		if (r->message)
			wrap_printf(w, "%s: %s", r->exception ? r->exception : "it said", r->message);
		if (r->cause && r->verdict)
			wrap_printf(w, "cause: %s (%s); all of it: %s", r->cause, r->sure ? r->sure : "possible",
				    r->verdict);
		if (a->how == HOW_LOST && a->ordered)
			break;
	}
	if (a->n_first > OTHERS_SHOWN && !(a->how == HOW_LOST && a->ordered))
		wrap_printf(w, "and %s more", count(p, a->n_first - OTHERS_SHOWN));
}

static void print_group(struct wrap *w, const struct job_group *g, struct pool *p)
{
	const char *at = g->at ? pool_printf(p, ", %s", g->at) : "";
	const char *ranks = job_ranges(p, g->rank, g->n_ranks, RANGES_SHOWN);

	if (g->n == 1 && g->n_ranks)
		wrap_printf(w, g->deed ? "rank %s %s%s" : "rank %s: %s%s", ranks, g->did, at);
	else if (g->n == 1)
		wrap_printf(w, g->deed ? "1 process %s%s" : "1 process: %s%s", g->did, at);
	else if (g->n_ranks == g->n)
		wrap_printf(w, "%s ranks (%s): %s%s", count(p, g->n), ranks, g->did, at);
	else
		wrap_printf(w, "%s processes%s%s%s: %s%s", count(p, g->n),
			    g->n_ranks ? g->n_ranks == 1 ? " (rank " : " (ranks " : "", ranks, g->n_ranks ? ")" : "",
			    g->did, at);
}

static void print_groups(struct wrap *w, const struct job_answer *a, struct pool *p)
{
	static const char *const labels[] = {
		[ROLE_FINE] = "fine", [ROLE_FIRST] = "first", [ROLE_FAILED] = "also", [ROLE_VICTIM] = "victim", [ROLE_OPEN] = "open"};
	struct job_group *list;
	size_t n = job_groups(a, &list, p), shown = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].role == ROLE_FIRST)
			continue;
		if (shown++ == GROUPS_SHOWN) {
			wrap_printf(w, "and more: --json has every rank");
			break;
		}
		if (!i || list[i].role != list[i - 1].role)
			wrap_label(w, labels[list[i].role]);
		print_group(w, &list[i], p);
	}
}

static void print_left_out(struct wrap *w, const struct job_attempt *at)
{
	if (at->n_damaged)
		wrap_printf(w, "%zu file%s could not be read: partial, damaged, or not of this format", at->n_damaged,
			    at->n_damaged == 1 ? "" : "s");
	if (at->n_foreign)
		wrap_printf(w, "%zu file%s of another user, or links: not read", at->n_foreign,
			    at->n_foreign == 1 ? "" : "s");
	if (at->n_older)
		wrap_printf(w, "%zu file%s of earlier runs under the same job id: not counted", at->n_older,
			    at->n_older == 1 ? "" : "s");
	if (at->n_twice)
		wrap_printf(w,
			"%zu file%s of ranks that ran twice at the same time: two programs under one job id; give each its own (CUWHY_JOB_ID)",
			    at->n_twice, at->n_twice == 1 ? "" : "s");
	if (at->too_many)
		wrap_printf(w, "there are more than %u files: the rest was not read", JOB_FILES_MAX);
}

void job_text(FILE *out, const struct job *j, struct job_answer *const *answer, const struct text_style *style)
{
	size_t last = j->n_attempts - 1;
	const struct job_answer *a = answer[last];
	struct pool p = {0};
	struct wrap w;

	wrap_init(&w, out, style);
	wrap_heading(&w, pool_printf(&p, "cuwhy: job %s, %s: %s", j->id, attempt_name(&p, a->attempt), a->title));
	print_first(&w, a, &p);
	for (size_t i = 0; i < a->n_because; i++) {
		if (!i)
			wrap_label(&w, "order");
		wrap_text(&w, a->because[i]);
	}
	print_groups(&w, a, &p);
	if (a->n_missing) {
		wrap_label(&w, "gone");
		wrap_printf(&w, "%s rank%s without a file: %s", count(&p, a->n_missing), a->n_missing == 1 ? "" : "s",
			    job_ranges(&p, a->missing, a->n_missing, RANGES_SHOWN));
	}
	wrap_label(&w, "job");
	if (a->world != JOB_UNKNOWN && !a->n_nodes)
		wrap_printf(&w, "%s ranks", count(&p, a->world));
	else if (a->world != JOB_UNKNOWN)
		wrap_printf(&w, "%s ranks, %zu machine%s seen", count(&p, a->world), a->n_nodes,
			    a->n_nodes == 1 ? "" : "s");
	else
		wrap_printf(&w, "%zu process%s on %zu machine%s", a->attempt->n, a->attempt->n == 1 ? "" : "es",
			    a->n_nodes, a->n_nodes == 1 ? "" : "s");
	print_left_out(&w, a->attempt);
	for (size_t i = last; i-- > 0;)
		wrap_printf(&w, "before, %s: %s", attempt_name(&p, answer[i]->attempt), answer[i]->title);
	if (j->n_others)
		wrap_printf(&w, "the folder has %zu more job%s, such as '%s'", j->n_others, j->n_others == 1 ? "" : "s",
			    j->other[0]);
	pool_release(&p);
}
