/* SPDX-License-Identifier: Apache-2.0
 * The report page: its processes, its verdict, and how it is written. What it shows of each: page_environment.c, page_events.c,
 * page_memory.c, page_snapshot.c.
 *
 * The data is JSON inside a <script> element that no browser runs. JSON has `<`, `>` and `&` only inside strings, where
 * they are escaped, as is everything beyond ASCII: nothing in the data can end the element.
 */
#include "show/page.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/private.h"
#include "case/process.h"
#include "find/memory/playback.h"
#include "read/recording/trace.h"
#include "verdict/doctor.h"
#include "verdict/verdict.h"
#include "show/page_blocks.h"
#include "show/page_causes.h"
#include "show/page_parts.h"
#include "show/page_source.h"
#include "show/page_words.h"
#include "show/report_json.h"

#define PROCESSES_MAX	512
#define DETAILS_MAX	12	/* processes with details */
#define OTHERS_MAX	64	/* verdicts of other processes, and notes */
#define CHECKS_MAX	64	/* of the doctor; it has fewer */

#define ISLANDS_MAX	((size_t)32 << 20)

#define DATA_MARK	"@@cuwhy-data@@"
#define ISLANDS_MARK	"@@cuwhy-islands@@"
#define TEXT_MARK	"@@cuwhy-text@@"
#define NO_CHARTS_MARK	"const uPlot = null;"	/* tools/page.py */

#ifndef CUWHY_VERSION
#define CUWHY_VERSION "unknown"
#endif

struct page *page_new(const char *kind, const char *path)
{
	struct page *p = xcalloc(1, sizeof(*p));
	const char *slash = strrchr(path, '/');

	p->blocks_left = PAGE_BLOCKS_MAX;
	buf_init(&p->islands, ISLANDS_MAX);
	p->processes = json_array();
	p->missing = json_array();
	p->data = JSON_OF(J_INT("page", 1), J_TEXT("cuwhy", CUWHY_VERSION), J_INT("made", time(NULL)),
			  J_VALUE("input", JSON_OF(J_TEXT("kind", kind), J_TEXT("path", path),
						   J_TEXT("name", slash && slash[1] ? slash + 1 : path))),
			  J_VALUE("processes", p->processes), J_VALUE("missing", p->missing));
	return p;
}

void page_free(struct page *p)
{
	if (!p)
		return;
	json_decref(p->data);
	buf_release(&p->islands);
	free(p);
}

void page_tell(struct page *p, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	json_array_append_new(p->missing, json_text(text));
	free(text);
}

void page_add_row(struct page *p, json_t *row)
{
	json_array_append_new(p->processes, row);
	p->n_processes++;
	p->n_details++;
}

static json_t *detail_json(struct trace *t, const struct process_end *end, const struct verdict *v)
{
	const struct cw_header *h = trace_header(t);
	json_t *failures, *launches, *neighbors, *devices, *j;
	struct page_words lines;

	page_words_init(&lines);	/* filled by the next four, most important first */
	failures = page_failures(t, &lines);
	launches = page_launches(t, v, &lines);
	neighbors = page_neighbors(t, v, &lines);
	devices = page_devices(t, end, &lines);
	j = JSON_OF(J_VALUE("environment", page_environment(h)), J_VALUE("gaps", page_gaps(h)),
		    J_BYTES("started", h->start_realtime_ns / 1000000),
		    J_VALUE("sources", page_sources(v, trace_sources(t), h->start_realtime_ns)),
		    J_VALUE("quotes", page_quotes(v, trace_sources(t))),
		    J_VALUE("callers", page_callers(v, trace_sources(t))), J_VALUE("failures", failures),
		    J_VALUE("launches", launches), J_VALUE("neighbors", neighbors),
		    J_VALUE("lanes", end->fault ? page_fault_lanes(end->fault) : json_null()),
		    J_VALUE("devices", devices), J_SHARED("lines", lines.list));
	page_words_release(&lines);
	return j;
}

static json_t *process_row(const struct trace *t, const struct process_end *end, const struct verdict *v)
{
	const struct cw_header *h = t ? trace_header(t) : NULL;
	bool timed = v && v->time_ns && h && v->time_ns > h->clock0.mono_ns;

	return JSON_OF(J_INT("pid", end->pid ? end->pid : h ? h->pid : 0), J_INT("ppid", end->ppid),
		       J_INT_OR_NULL("rank", h && h->rank != CW_UNKNOWN, h->rank),
		       J_INT_OR_NULL("exit", end->status_known && end->exit >= 0, end->exit),
		       J_INT_OR_NULL("signal", end->status_known && end->signal, end->signal),
		       J_TEXT("command", end->command ? end->command
					 : h	      ? h->cmdline
						      : NULL),
		       J_BOOL("cuda", t != NULL), J_TEXT("cause", v ? verdict_cause(v) : NULL),
		       J_TEXT("title", v ? verdict_title(v) : NULL), J_INT("notes", v ? verdict_notes(v) : 0),
		       J_IF(timed, J_BYTES("failed_us", (v->time_ns - h->clock0.mono_ns) / 1000)),
		       J_IF(timed, J_BYTES("failed_mono_us", v->time_ns / 1000)));
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

void page_add_what_if(struct page *p, const struct verdict *v, int device, json_t *what_if)
{
	json_t *detail, *d;
	size_t at, i;

	detail = json_object_get(find_row(p, verdict_pid(v), verdict_cause(v), &at), "detail");
	json_array_foreach(json_object_get(detail, "devices"), i, d)
		if (json_integer_value(json_object_get(d, "device")) == device)
			JSON_ADD(d, J_SHARED("what_if", what_if));
	json_decref(what_if);
}

void page_put_lives(struct page *p, json_t *device, struct lives *l)
{
	int number = (int)json_integer_value(json_object_get(device, "device"));
	json_t *blocks = lives_json(l, number, p->n_islands, &p->blocks_left, &p->islands);

	p->n_islands += json_is_object(blocks);
	JSON_ADD(device, J_VALUE("blocks", blocks));
}

void page_add_blocks(struct page *p, const struct verdict *v, struct trace *t, const char *part)
{
	json_t *detail, *d;
	struct lives l;
	struct buf bytes;
	size_t at, i;

	detail = json_object_get(find_row(p, verdict_pid(v), verdict_cause(v), &at), "detail");
	if (!detail || !p->blocks_left)
		return;
	if (memory_events_read(&bytes, t, part, NULL) == 0) {
		lives_init(&l, p->blocks_left);
		lives_of_recording(&l, t, bytes.data, bytes.len);
		json_array_foreach(json_object_get(detail, "devices"), i, d)
			page_put_lives(p, d, &l);
		lives_release(&l);
	}
	buf_release(&bytes);
}

void page_add_process(struct page *p, struct trace *t, const struct process_end *end, const struct verdict *v,
		      const char *unread, bool must)
{
	json_t *row = process_row(t, end, v), *old = NULL;
	bool detail = t && v && (must || p->n_details < DETAILS_MAX);
	size_t at;

	p->n_details += detail;
	JSON_ADD(row, J_IF(detail, J_VALUE("detail", detail_json(t, end, v))), J_IF(unread, J_TEXT("unread", unread)));
	if (must && v)
		old = find_row(p, verdict_pid(v), verdict_cause(v), &at);
	if (old) {
		json_object_update(old, row);
		json_decref(row);
	} else if (must || p->n_processes < PROCESSES_MAX) {
		json_array_append_new(p->processes, row);
		p->n_processes++;
	} else {
		json_decref(row);
		p->left_out++;
	}
}

void page_add_dump(struct page *p, const struct culprit *c)
{
	json_t *detail =
		JSON_OF(J_VALUE("environment", page_environment_of_dump(c)), J_VALUE("lanes", page_fault_lanes(c)));

	page_add_row(p, JSON_OF(J_NULL("pid"), J_NULL("rank"), J_VALUE("detail", detail)));
}

/* Names and values, as `cuwhy doctor --json` has them. */
static json_t *facts_list(const struct casefile *f)
{
	json_t *all = known_facts_json(f), *list = json_array(), *v;
	const char *name;

	json_object_foreach(all, name, v) {
		char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);

		json_array_append_new(list, json_pack("[s,o]", name, json_text(text ? text : json_string_value(v))));
		free(text);
	}
	json_decref(all);
	return list;
}

void page_add_machine(struct page *p, const struct doctor *d, const struct machine *m)
{
	json_t *detail = JSON_OF(J_VALUE("environment", page_environment_of_machine(&d->verdict->c, m)),
				 J_VALUE("facts", facts_list(&d->verdict->c)));

	page_add_row(p, JSON_OF(J_NULL("pid"), J_NULL("rank"), J_VALUE("detail", detail)));
	JSON_ADD(p->data, J_TEXT("title", doctor_title(d)));
}

void page_set_checks(struct page *p, const struct doctor *d)
{
	JSON_ADD(json_object_get(p->data, "verdict"), J_VALUE("checks", checks_json(d->check, d->n_checks)));
}

static size_t cut_list(json_t *list, size_t most)
{
	size_t cut = 0;

	for (; json_array_size(list) > most; cut++)
		json_array_remove(list, json_array_size(list) - 1);
	return cut;
}

/* The ledgers of other processes are in their details. */
static void slim_verdicts(json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		json_object_del(json_object_get(v, "memory"), "ledger");
		json_object_del(v, "notes");
	}
}

/* The process that the verdict is about comes first. */
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
	static const char *const lists[] = {"others", "notes"};

	for (int i = 0; i < 2; i++) {
		size_t cut = cut_list(json_object_get(j, lists[i]), OTHERS_MAX);

		slim_verdicts(json_object_get(j, lists[i]));
		if (cut)
			page_tell(p, "not shown: %zu more %s%s", cut, i ? "handled failure" : "failed process",
				  cut == 1 ? ""
				  : i	   ? "s"
					   : "es");
	}
	json_object_del(json_object_get(j, "memory"), "ledger");
	cut_list(json_object_get(j, "checks"), CHECKS_MAX);
	if (v)
		move_first(p, v);
	JSON_ADD(p->data, J_BOOL("stored", stored != NULL), J_VALUE("verdict", j));
}

void page_set_job(struct page *p, json_t *job)
{
	JSON_ADD(p->data, J_VALUE("job", job));
}

/* By lines: a long text would be cut. */
void page_set_issue(struct page *p, const char *markdown)
{
	json_t *lines = json_array();

	while (*markdown) {
		size_t n = strcspn(markdown, "\n");

		json_array_append_new(lines, json_stringn(markdown, n));
		markdown += n + (markdown[n] == '\n');
	}
	JSON_ADD(p->data, J_VALUE("issue", lines));
}

extern const char cuwhy_page_start[];
extern const uint64_t cuwhy_page_size;

void page_escape(struct buf *out, const char *json, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		const char *as = json[i] == '<' ? "\\u003c" : json[i] == '>' ? "\\u003e" : json[i] == '&' ? "\\u0026" : NULL;

		if (!as)
			continue;
		buf_add(out, json + from, i - from);
		buf_adds(out, as);
		from = i + 1;
	}
	buf_add(out, json + from, len - from);
}

/* Text between tags. */
static void escape_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			buf_adds(out, "&lt;");
		else if (*text == '>')
			buf_adds(out, "&gt;");
		else if (*text == '&')
			buf_adds(out, "&amp;");
		else
			buf_add(out, text, 1);
	}
}

static int escape_json(const char *bytes, size_t n, void *out)
{
	page_escape(out, bytes, n);
	return 0;
}

json_t *page_data(struct page *p)
{
	JSON_ADD(p->data, J_VALUE("causes", page_causes(p->data)));
	page_bound(p);
	private_hide_in(p->data, true);
	return p->data;
}

/* Copies from `at` up to the mark, and skips the mark. */
static const char *copy_until(struct buf *out, const char *at, const char *mark)
{
	const char *end = cuwhy_page_start + cuwhy_page_size, *found = memmem(at, (size_t)(end - at), mark, strlen(mark));

	if (!found)
		return NULL;
	buf_add(out, at, (size_t)(found - at));
	return found + strlen(mark);
}

bool page_has_charts(void)
{
	return !memmem(cuwhy_page_start, cuwhy_page_size, NO_CHARTS_MARK, strlen(NO_CHARTS_MARK));
}

int page_write(struct page *p, const char *text, struct buf *out, struct err *e)
{
	const char *at = cuwhy_page_start;

	at = copy_until(out, at, TEXT_MARK);
	if (at) {
		char *shown = private_hide_homes(private_shown(text), NULL);

		escape_text(out, shown);
		free(shown);
		at = copy_until(out, at, DATA_MARK);
	}
	if (!at)
		return err_set(e, -EINVAL, "the report page of this build is damaged");
	json_dump_callback(page_data(p), escape_json, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	at = copy_until(out, at, ISLANDS_MARK);
	if (!at)
		return err_set(e, -EINVAL, "the report page of this build is damaged");
	buf_add(out, p->islands.data, p->islands.len);	/* base64: nothing in it is markup */
	buf_add(out, at, (size_t)(cuwhy_page_start + cuwhy_page_size - at));
	return out->full ? err_set(e, -EFBIG, "the page would be too large") : 0;
}
