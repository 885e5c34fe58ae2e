/* SPDX-License-Identifier: Apache-2.0
 * Puts a page together: processes with their details, the verdict, what is missing.
 */
#include "write/page.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "judge/fault.h"
#include "base/json_text.h"
#include "write/page_priv.h"
#include "write/report_json.h"
#include "judge/verdict.h"
#include "input/recording/trace.h"

#define OTHERS_MAX	64	/* verdicts of other processes, and notes */
#define CHECKS_MAX	64	/* of the doctor; it has fewer */

#ifndef CUWHY_VERSION
#define CUWHY_VERSION "unknown"
#endif

struct page *page_new(const char *kind, const char *path)
{
	struct page *p = xcalloc(1, sizeof(*p));
	const char *slash = strrchr(path, '/');

	p->data = json_object();
	p->processes = json_array();
	p->missing = json_array();
	json_object_set_new(p->data, "page", json_integer(1));
	json_object_set_new(p->data, "cuwhy", json_string(CUWHY_VERSION));
	json_object_set_new(p->data, "made", json_integer((json_int_t)time(NULL)));
	json_object_set_new(p->data, "input", json_pack("{s:s,s:o,s:o}", "kind", kind, "path", json_text(path), "name",
							json_text(slash && slash[1] ? slash + 1 : path)));
	json_object_set_new(p->data, "processes", p->processes);
	json_object_set_new(p->data, "missing", p->missing);
	return p;
}

void page_free(struct page *p)
{
	if (!p)
		return;
	json_decref(p->data);
	free(p);
}

/* --- processes ---------------------------------------------------------------------------------- */

static json_t *detail_of(struct trace *t, const struct process_end *end, const struct verdict *v)
{
	const struct cw_header *h = trace_header(t);
	json_t *j = json_object();
	struct page_words lines;

	words_init(&lines);
	json_object_set_new(j, "environment", page_environment(t, end->fault));
	json_object_set_new(j, "gaps", page_gaps(t));
	json_object_set_new(j, "started", page_integer(h->start_realtime_ns / 1000000));
	json_object_set_new(j, "sources", page_sources(v, h->cwd, h->start_realtime_ns));
	json_object_set_new(j, "quotes", page_quotes(v, h->cwd));
	json_object_set_new(j, "callers", page_callers(v, h->cwd));
	json_object_set_new(j, "failures", page_failures(t, &lines));
	json_object_set_new(j, "launches", page_launches(t, v, &lines));
	json_object_set_new(j, "neighbours", page_neighbours(t, v, &lines));
	json_object_set_new(j, "lanes", end->fault ? page_lanes(end->fault) : json_null());
	json_object_set_new(j, "devices", page_devices(t, end, &lines));
	json_object_set(j, "lines", lines.list);
	words_release(&lines);
	return j;
}

static json_t *row_of(const struct trace *t, const struct process_end *end, const struct verdict *v)
{
	const struct cw_header *h = t ? trace_header(t) : NULL;
	uint32_t pid = end->pid ? end->pid : h ? h->pid : 0;
	json_t *j = json_object();

	json_object_set_new(j, "pid", json_integer(pid));
	json_object_set_new(j, "ppid", json_integer(end->ppid));
	json_object_set_new(j, "rank", h && h->rank != CW_UNKNOWN ? json_integer(h->rank) : json_null());
	json_object_set_new(j, "exit", end->status_known && end->exit >= 0 ? json_integer(end->exit) : json_null());
	json_object_set_new(j, "signal", end->status_known && end->signal ? json_integer(end->signal) : json_null());
	json_object_set_new(j, "command", json_text(end->command ? end->command : h ? h->cmdline : NULL));
	json_object_set_new(j, "cuda", json_boolean(t != NULL));
	json_object_set_new(j, "cause", json_text(v ? verdict_cause(v) : NULL));
	json_object_set_new(j, "title", json_text(v ? verdict_title(v) : NULL));
	json_object_set_new(j, "notes", json_integer(v ? (json_int_t)verdict_notes(v) : 0));
	if (v && v->time_ns && h && v->time_ns > h->clock0.mono_ns) {
		json_object_set_new(j, "failed_us", page_integer((v->time_ns - h->clock0.mono_ns) / 1000));
		json_object_set_new(j, "failed_mono_us", page_integer(v->time_ns / 1000));
	}
	return j;
}

/* An exec leaves several parts of one process: the cause tells them apart. */
static json_t *find_row(const struct page *p, json_int_t pid, const char *cause, size_t *at)
{
	json_t *row;
	size_t i;

	json_array_foreach(p->processes, i, row) {
		const char *is = json_string_value(json_object_get(row, "cause"));

		*at = i;
		if (json_integer_value(json_object_get(row, "pid")) == pid && is && cause && !strcmp(is, cause))
			return row;
	}
	return NULL;
}

bool page_has_details(const struct page *p, const struct verdict *v)
{
	size_t at;

	return json_object_get(find_row(p, verdict_pid(v), verdict_cause(v), &at), "detail") != NULL;
}

void page_add_process(struct page *p, struct trace *t, const struct process_end *end, const struct verdict *v,
		      const char *unread, bool must)
{
	json_t *row = row_of(t, end, v), *old = NULL;
	bool detail = t && v && (must || p->n_details < PAGE_DETAILS_MAX);
	size_t at;

	if (detail) {
		json_object_set_new(row, "detail", detail_of(t, end, v));
		p->n_details++;
	}
	if (unread)
		json_object_set_new(row, "unread", json_text(unread));
	if (must && v)
		old = find_row(p, verdict_pid(v), verdict_cause(v), &at);
	if (old) {
		json_object_update(old, row);
		json_decref(row);
	} else if (must || p->n_processes < PAGE_PROCESSES_MAX) {
		json_array_append_new(p->processes, row);
		p->n_processes++;
	} else {
		json_decref(row);
		p->left_out++;
	}
}

void page_add_dump(struct page *p, const struct culprit *c)
{
	json_t *detail = json_pack("{s:o,s:o}", "environment", page_environment(NULL, c), "lanes", page_lanes(c));

	json_array_append_new(p->processes, json_pack("{s:n,s:n,s:o}", "pid", "rank", "detail", detail));
	p->n_processes++;
	p->n_details++;
}

/* --- the verdict -------------------------------------------------------------------------------- */

static size_t cut_list(json_t *list, size_t most)
{
	size_t cut = 0;

	for (; json_array_size(list) > most; cut++)
		json_array_remove(list, json_array_size(list) - 1);
	return cut;
}

/* The ledgers of others are in their details. */
static void slim(json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		json_object_del(json_object_get(v, "memory"), "ledger");
		json_object_del(v, "notes");
	}
}

/* The process that the verdict is about leads. */
static void move_first(struct page *p, const struct verdict *v)
{
	size_t at = 0;
	json_t *row = find_row(p, verdict_pid(v), verdict_cause(v), &at);

	if (!row)
		return;
	json_incref(row);
	json_array_remove(p->processes, at);
	json_array_insert_new(p->processes, 0, row);
}

void page_set_verdict(struct page *p, const struct verdict *v, json_t *stored)
{
	json_t *j = stored ? json_deep_copy(stored) : verdict_json(v);
	static const char *const lists[] = { "others", "notes" };

	for (int i = 0; i < 2; i++) {
		size_t cut = cut_list(json_object_get(j, lists[i]), OTHERS_MAX);

		slim(json_object_get(j, lists[i]));
		if (cut)
			page_tell(p, "%zu more %s are not shown", cut, i ? "handled failures" : "failed processes");
	}
	json_object_del(json_object_get(j, "memory"), "ledger");
	cut_list(json_object_get(j, "checks"), CHECKS_MAX);
	if (v)
		move_first(p, v);
	json_object_set_new(p->data, "stored", json_boolean(stored != NULL));
	json_object_set_new(p->data, "verdict", j);
}
