/* SPDX-License-Identifier: Apache-2.0
 * Runs of a text: something failed, and something was started again (see log.h).
 */
#include <string.h>

#include "find/words/log_parts.h"

enum restart log_best_restart(const struct text_log *l, unsigned first, unsigned last)
{
	enum restart best = RESTART_NOT;

	for (unsigned i = first + 1; i <= last; i++)
		best = l->runs.list[i].by > best ? l->runs.list[i].by : best;
	return best;
}

/* Something failed in this input, since that run began. */
static bool failed_since(const struct text_log *l, unsigned run, const char *who)
{
	for (size_t i = l->events.n; i-- > 0;) {
		const struct text_event *e = &l->events.list[i];

		if (e->run >= run && e->file == l->input.file && !e->warning && (e->raised || e->marked) &&
		    (!who[0] || !strcmp(e->who, who)))
			return true;
	}
	return false;
}

/* The line starts something again: a traceback or a message that went on until here has ended. What was started before and did not
 * fail is a part of the same run. */
static void begin_run(struct text_log *l, enum restart by)
{
	struct run *r = &l->runs.list[l->runs.last];

	if (!l->runs.last || r->file != l->input.file || failed_since(l, l->runs.last, "")) {
		if (l->runs.last + 1 == LOG_RUNS_MAX)
			return;
		*++r = (struct run){.by = by, .file = l->input.file, .order = l->input.order};
		r->progress = by == RESTART_STATEMENT ? r[-1].progress : 0;
		l->runs.last++;
	} else if (by > RESTART_STATEMENT) {
		*r = (struct run){.by = by > r->by ? by : r->by, .file = l->input.file, .order = l->input.order};
	}
	for (size_t i = 0; i < TALKS_MAX; i++) {
		l->talks.list[i].state = TALK_IDLE;
		l->talks.list[i].headed = false;
		l->talks.list[i].traceback.n = 0;
	}
	if (by > RESTART_STATEMENT) {
		l->asserts.from = l->asserts.n;
		l->before.n = 0;
	}
}

void log_note_restart(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	enum restart by = restart_line(&l->runs.restarts, line, failed_since(l, 0, line->who));

	/* an exception's message may have several lines, and such words */
	if (by && (by != RESTART_TOLD || t->state != TALK_MESSAGE))
		begin_run(l, by);
}

enum restart log_restarted(const struct text_log *l, const struct text_event *a, const struct text_event *b)
{
	if (a->file != b->file || a->run == b->run)
		return RESTART_NOT;
	return a->run < b->run ? log_best_restart(l, a->run, b->run) : log_best_restart(l, b->run, a->run);
}

struct text_past log_past_runs(const struct text_log *l, struct text_past past, const struct text_event *e)
{
	const struct run *r = &l->runs.list[e->run];

	if (past.to >= r->order)
		return past;
	past.to = r->order;
	for (size_t i = 0; i < l->input.n_files; i++)
		if (l->input.files[i].name == r->file)
			past.from = l->input.files[i].order;
	return past;
}

struct text_past log_past_event(struct text_past past, const struct text_event *e)
{
	uint64_t order = e->after_last > e->order ? e->after_last : e->order;

	if (past.to <= order)
		past.to = order + 1;
	return past;
}

/* `order` is of another process than `e`: one of the same input that was started before or after it. */
static bool is_of_other_run(const struct text_log *l, const struct text_event *e, uint64_t order)
{
	for (unsigned i = 1; i <= l->runs.last; i++)
		if (l->runs.list[i].by > RESTART_STATEMENT && l->runs.list[i].file == e->file &&
		    (order < l->runs.list[i].order) != (e->order < l->runs.list[i].order))
			return true;
	return false;
}

size_t log_asserts(const struct text_log *l, struct text_past past, const struct text_event *e,
		   const struct text_assert **list)
{
	const struct text_assert *a = l->asserts.list;
	size_t first = 0, n = l->asserts.n;

	while (first < n && (is_over(past, a[first].order) || (e && is_of_other_run(l, e, a[first].order))))
		first++;
	while (n > first && e && is_of_other_run(l, e, a[n - 1].order))
		n--;
	*list = a + first;
	return n - first;
}
