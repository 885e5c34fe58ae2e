/* SPDX-License-Identifier: Apache-2.0
 * A running process as text and as JSON (see report_live.h).
 */
#include "show/report_live.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "case/live.h"
#include "show/report.h"
#include "show/report_json.h"
#include "show/report_wrap.h"

#define THREADS_SHOWN	12
#define NATIVE_SHOWN	3

static char *thread_name(const struct live_thread *t)
{
	if (t->main)
		return xstrdup("the main thread");
	return t->name[0] ? xasprintf("thread %u (%s)", t->tid, t->name) : xasprintf("thread %u", t->tid);
}

static char *thread_does(const struct live_thread *t, const char *at)
{
	if (t->waits == LIVE_NOTHING || t->waits == LIVE_LOOP || t->waits == LIVE_NATIVE)
		return xasprintf("runs%s (%.0f %% of a processor%s)", at, t->cpu * 100,
				 t->moved ? "" : ", and nothing changed");
	if (t->what)
		return xasprintf("waits for %s%s (%s)", live_waits_text(t->waits), at, t->what);
	return xasprintf("waits for %s%s", live_waits_text(t->waits), at);
}

static char *thread_text(const struct live_thread *t)
{
	char *name = thread_name(t);
	char *at = t->line.file ? xasprintf(" at %s:%u", t->line.shown, t->line.number) : xstrdup("");
	char *does = thread_does(t, at);
	char *held = t->holder ? xasprintf(", held by thread %u", t->holder) : xstrdup("");
	char *all = xasprintf("%s %s%s%s", name, does, held, t->gil ? "; it holds the GIL" : "");

	free(name);
	free(at);
	free(does);
	free(held);
	return all;
}

static void wrap_native(struct wrap *w, const struct live_thread *t)
{
	for (size_t i = 0; i < t->n_native && i < NATIVE_SHOWN; i++)
		wrap_printf(w, "  %s %s%s%s", i ? "  " : "in", str_given(t->native[i].function),
			    str_if(t->native[i].function, " of "), t->native[i].library);
}

static bool is_shown(const struct live *l, const struct live_thread *t)
{
	return t->python || t->main || t == l->stuck || t == l->works;
}

static void wrap_gpus(struct wrap *w, const struct live *l)
{
	char bytes[32];

	for (size_t i = 0; i < l->n_gpus; i++) {
		const struct live_gpu *g = &l->gpu[i];
		char *busy = g->utilization >= 0 ? xasprintf("; the GPU is busy %d %% of the time", g->utilization)
						 : xstrdup("");

		if (g->bytes == UINT64_MAX)
			wrap_printf(w, "GPU %u: it holds memory%s", g->index, busy);
		else
			wrap_printf(w, "GPU %u: it holds %s%s", g->index,
				    format_bytes(bytes, sizeof(bytes), (double)g->bytes), busy);
		free(busy);
	}
}

void live_wrap(struct wrap *w, const struct live *l)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < l->n; i++) {
		char *text;

		if (!is_shown(l, &l->thread[i]) || shown == THREADS_SHOWN) {
			left++;
			continue;
		}
		text = thread_text(&l->thread[i]);
		wrap_text(w, text);
		free(text);
		if (&l->thread[i] == l->stuck || l->thread[i].waits == LIVE_NATIVE)
			wrap_native(w, &l->thread[i]);
		shown++;
	}
	if (left)
		wrap_printf(w, "and %zu more thread%s", left, left == 1 ? "" : "s");
	if (l->no_python)
		wrap_printf(w, "no Python stacks: %s", l->no_python);
	wrap_gpus(w, l);
	if (l->recorded)
		wrap_printf(w, "cuwhy's recorder is inside: %llu launches so far%s%s%s%s",
			    (unsigned long long)l->launches, str_if(l->last_kernel, ", the last one of "),
			    str_given(l->last_kernel), str_if(l->last_line, " at "), str_given(l->last_line));
}

void live_text_fine(FILE *out, const struct live *l, const struct text_style *style)
{
	const struct live_thread *t = l->works;
	struct wrap w;
	char *text;

	wrap_init(&w, out, style);
	if (l->peer_works)
		text = xasprintf("cuwhy: process %u is not hung: it waits for process %u, which works", l->pid,
				 l->peer_works);
	else if (t && !t->main)
		text = xasprintf("cuwhy: process %u is not hung: thread %u works", l->pid, t->tid);
	else if (t && !t->moved)
		text = xasprintf("cuwhy: process %u runs; whether it makes progress cannot be seen", l->pid);
	else
		text = xasprintf("cuwhy: process %u is not hung: it moved while it was observed", l->pid);
	wrap_heading(&w, text);
	free(text);
	putc('\n', out);
	wrap_label(&w, "WHAT");
	live_wrap(&w, l);
	wrap_label(&w, "WHY");
	wrap_printf(&w, "observed %u times in %.1f s; its threads used %.0f %% of a processor meanwhile", l->looks,
		    l->seconds, l->cpu * 100);
	if (!l->peer_works)
		wrap_text(&w, "cuwhy cannot tell a loop that ends from one that never does, as long as variables change");
}

static json_t *native_json(const struct live_thread *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_native; i++)
		json_array_append_new(list, JSON_OF(J_TEXT("library", t->native[i].library), J_TEXT("function", t->native[i].function),
				      J_INT("offset", t->native[i].offset), J_BOOL("unwound", t->native[i].unwound)));
	return list;
}

static json_t *thread_json(const struct live_thread *t)
{
	return JSON_OF(J_INT("tid", t->tid), J_TEXT("name", t->name), J_BOOL("main", t->main),
		       J_BOOL("python", t->python), J_BOOL("moved", t->moved), J_BOOL("gil", t->gil),
		       J_INT("cpu_percent", (int)(t->cpu * 100 + 0.5)), J_TEXT("waits", live_waits_word(t->waits)),
		       J_TEXT("what", t->what), J_TEXT("call", t->call), J_BOOL("timed", t->timed),
		       J_INT_OR_NULL("holder", t->holder, t->holder), J_BOOL("holder_sure", t->holder_sure),
		       J_INT_OR_NULL("peer", t->peer, t->peer), J_TEXT("peer_text", t->peer_text),
		       J_VALUE("line", line_json(&t->line)), J_VALUE("stack", lines_json(t->stack, t->n_stack)),
		       J_VALUE("native", native_json(t)));
}

static json_t *gpu_json(const struct live_gpu *g)
{
	return JSON_OF(J_INT("index", g->index), J_TEXT("name", g->name), J_BYTES("bytes", g->bytes),
		       J_INT_OR_NULL("utilization", g->utilization >= 0, g->utilization));
}

json_t *live_json(const struct live *l)
{
	json_t *threads = json_array(), *gpus = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(threads, thread_json(&l->thread[i]));
	for (size_t i = 0; i < l->n_gpus; i++)
		json_array_append_new(gpus, gpu_json(&l->gpu[i]));
	return JSON_OF(J_INT("pid", l->pid), J_TEXT("command", l->command), J_BOOL("hung", l->stuck != NULL),
		       J_INT_OR_NULL("thread", l->stuck, l->stuck->tid),
		       J_INT_OR_NULL("peer_works", l->peer_works, l->peer_works), J_BOOL("deadlock", l->deadlock),
		       J_TEXT("wakes", l->wakes), J_INT("looks", l->looks), J_INT("looked_ms", l->seconds * 1000),
		       J_INT("cpu_percent", (int)(l->cpu * 100 + 0.5)), J_INT("stops", l->stops),
		       J_INT("longest_stop_us", l->longest_stop_ns / 1000), J_TEXT("python", l->python),
		       J_TEXT("no_python", l->no_python), J_TEXT("no_native", l->no_native),
		       J_VALUE("threads", threads), J_VALUE("gpus", gpus),
		       J_VALUE("recorder", l->recorded ? JSON_OF(J_INT("launches", l->launches),
								 J_TEXT("last_kernel", l->last_kernel),
								 J_TEXT("last_line", l->last_line))
						       : json_null()));
}
