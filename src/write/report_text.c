/* SPDX-License-Identifier: Apache-2.0
 * The verdict as text: WHERE, WHAT, WHY, FIX, SURE.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "write/report_ledger.h"
#include "write/report_wrap.h"
#include "judge/verdict_priv.h"

static bool same_line(const struct line *a, const struct line *b)
{
	return a->file && b->file && a->number == b->number && !strcmp(a->file, b->file);
}

static void text_headline(struct wrap *w, const struct verdict *v)
{
	/* what is only the first of several candidates is not told as a fact */
	const char *perhaps = v->from_text && v->sure == SURE_POSSIBLE && v->n_candidates ? "perhaps: " : "";
	char *text = v->code ? xasprintf("cuwhy: %s%s (CUDA error %u)", perhaps, v->title, v->code)
			     : xasprintf("cuwhy: %s%s", perhaps, v->title);

	wrap_heading(w, text);
	free(text);
	putc('\n', w->out);
}

/* The place and its text beside each other when they fit, else below each other. */
static void text_line(struct wrap *w, const struct line *l)
{
	bool named = l->function && l->function[0] != '<';
	char *place = xasprintf("%s:%u%s%s%s", l->shown, l->number, named ? " in " : "",
				named ? l->function : "", named ? "()" : "");

	if (l->source && strlen(place) + 4 + strlen(l->source) + 9 <= (size_t)w->width) {
		wrap_printf(w, "%s    %s", place, l->source);
	} else {
		wrap_text(w, place);
		if (l->source)
			wrap_text(w, l->source);
	}
	free(place);
}

#define WAITING_SHOWN 4

static void text_waiting(struct wrap *w, const struct verdict *v)
{
	for (size_t i = 0; i < v->n_waiting && i < WAITING_SHOWN; i++) {
		const struct waiting *t = &v->waiting[i];
		const char *how = t->polls ? "asked for with" : "waited for in";

		if (same_line(&t->line, &v->where))
			wrap_printf(w, "this line waited for %llu s in %s, for work that was launched earlier",
				    (unsigned long long)t->seconds, t->api);
		else if (t->line.file)
			wrap_printf(w, "it was %s %s at %s:%u, for %llu s", how, t->api, t->line.shown, t->line.number,
				    (unsigned long long)t->seconds);
		else
			wrap_printf(w, "it was %s %s by thread %u, for %llu s", how, t->api, t->tid,
				    (unsigned long long)t->seconds);
	}
	if (v->n_waiting > WAITING_SHOWN)
		wrap_printf(w, "and by %zu more threads", v->n_waiting - WAITING_SHOWN);
}

static void text_other_lines(struct wrap *w, const struct verdict *v)
{
	if (v->where.library)
		wrap_text(w, "this is library code: no line of your own was on the stack");
	if (v->async && v->where.file && v->n_suspects != 1 && (!v->fault.known || v->from_text))
		wrap_text(w, "the error was noticed here; the work that caused it was launched earlier");
	for (size_t i = 0; i < v->n_or; i++)
		wrap_printf(w, "or %s:%u, which launched the same kernel: they cannot be told apart", v->or[i].shown,
			    v->or[i].number);
	text_waiting(w, v);
	if (v->noticed.file && !v->n_waiting && !same_line(&v->noticed, &v->where) &&
	    !same_line(&v->noticed, &v->backward))
		wrap_printf(w, "Python's traceback says %s:%u. That is where the error was noticed.",
			    v->noticed.shown, v->noticed.number);
	if (v->backward.file && !same_line(&v->backward, &v->where))
		wrap_printf(w, "it failed in the backward of this line%s%s; backward was called at %s:%u",
			    v->node ? ", in " : "", v->node ? v->node : "", v->backward.shown,
			    v->backward.number);
	else if (v->node)
		wrap_printf(w, "in backward, in %s", v->node);
	if (v->forward.file && !same_line(&v->forward, &v->where))
		wrap_printf(w, "the forward line of that gradient is %s:%u", v->forward.shown,
			    v->forward.number);
	if (v->replay.file)
		wrap_printf(w, "it was captured there into a CUDA graph, which was run at %s:%u", v->replay.shown,
			    v->replay.number);
	if (v->capture.file)
		wrap_printf(w, "a graph capture was under way, begun at %s:%u", v->capture.shown,
			    v->capture.number);
}

static void text_where(struct wrap *w, const struct verdict *v)
{
	const struct line *caller = &v->caller;

	wrap_label(w, "WHERE");
	if (v->where.file)
		text_line(w, &v->where);
	else if (v->alone)
		wrap_text(w, "a core dump alone does not tell which line launched the kernel");
	else if (v->frames_off)
		wrap_printf(w, "the line is not known: %s", v->frames_off);
	else
		wrap_text(w, "the line is not known");
	if (caller->file && !same_line(caller, &v->backward))
		wrap_printf(w, "called at %s:%u%s%s", caller->shown, caller->number, caller->source ? "    " : "",
			    caller->source ? caller->source : "");
	text_other_lines(w, v);
	if (v->rank != CW_UNKNOWN && v->from_text)
		wrap_printf(w, "rank %u", v->rank);
	else if (v->rank != CW_UNKNOWN)
		wrap_printf(w, "rank %u, process %u", v->rank, v->pid);
	if (v->from_text && v->text_line)
		wrap_printf(w, "the error is on line %llu of %s", (unsigned long long)v->text_line, v->text_file);
}

void text_said(struct wrap *w, const char *label, const struct said *s)
{
	wrap_label(w, label);
	for (; s; s = s->next) {
		wrap_text(w, s->text);
		if (s->command)
			wrap_command(w, s->command);
	}
	w->label = NULL;
}

static void text_suspects(struct wrap *w, const struct verdict *v)
{
	if (v->n_suspects < 2)
		return;
	wrap_printf(w, "%zu launches since the last synchronisation that went well are suspects; their lines, newest first:",
		    v->suspect_launches);
	for (size_t i = 0; i < v->n_suspects; i++) {
		const struct suspect_line *s = &v->suspects[i];
		const char *kernel = s->kernel ? s->kernel : "an unnamed kernel";
		const char *more = s->launches > 1 ? " and more" : "";

		if (s->line.file)
			wrap_printf(w, "  %s:%u  %s%s", s->line.shown, s->line.number, kernel, more);
		else
			wrap_printf(w, "  no line known  %s%s", kernel, more);
	}
}

static void text_ids(struct wrap *w, const char *before, const char *const *ids, size_t n)
{
	char *text = NULL;
	size_t size = 0;
	FILE *line = n ? open_memstream(&text, &size) : NULL;

	if (!line)
		return;
	fputs(before, line);
	for (size_t i = 0; i < n; i++)
		fprintf(line, "%s%s", i ? ", " : " ", ids[i]);
	if (!fclose(line))
		wrap_text(w, text);
	free(text);
}

#define SETTLE_SHOWN 4

/* What would tell the candidates apart. */
static void text_settle(struct wrap *w, const struct verdict *v)
{
	if (!v->from_text || v->sure == SURE_CERTAIN)
		return;
	for (size_t i = 0; i < v->n_candidates && i < SETTLE_SHOWN; i++)
		if (v->candidates[i].cause->settle)
			wrap_printf(w, "%s? %s", v->candidates[i].cause->id, v->candidates[i].cause->settle);
}

static void text_sure(struct wrap *w, const struct verdict *v)
{
	const char *others[16];
	size_t n = 0;

	wrap_label(w, "SURE");
	wrap_printf(w, "%s%s%s", certainty_word(v->sure), v->because ? ": " : "",
		    v->because ? v->because : "");
	for (size_t i = 1; i < v->n_candidates && n < 16; i++)
		others[n++] = v->candidates[i].cause->id;
	text_ids(w, "it could also be", others, n);
	text_settle(w, v);
	if (v->sure != SURE_CERTAIN)
		text_ids(w, "could not be checked:", v->unchecked, v->n_unchecked);
	if (v->sim)
		wrap_text(w, "the GPU was the simulated one");
}

static void text_other(struct wrap *w, const struct verdict *o)
{
	char line[600];

	if (o->victim_of)
		snprintf(line, sizeof(line), "%s", o->title);
	else if (!o->pid)	/* not a process: a text, a dump, a snapshot */
		snprintf(line, sizeof(line), "another of the inputs tells of %s (%s)", o->cause->id, certainty_word(o->sure));
	else if (o->where.file)
		snprintf(line, sizeof(line), "then process %u failed too: %s at %s:%u", o->pid, o->cause->id,
			 o->where.shown, o->where.number);
	else
		snprintf(line, sizeof(line), "then process %u failed too: %s", o->pid, o->cause->id);
	wrap_plain(w, 2, line);
}

static void text_rest(struct wrap *w, const struct verdict *v, const struct text_style *style)
{
	size_t notes = verdict_notes(v);

	if (v->others || notes || (style && style->recording))
		putc('\n', w->out);
	for (const struct verdict *o = v->others; o; o = o->next)
		text_other(w, o);
	if (notes)
		fprintf(w->out, "  %zu other CUDA failure%s %s handled by the program\n", notes,
			notes == 1 ? "" : "s", notes == 1 ? "was" : "were");
	if (style && style->recording)
		fprintf(w->out, "  cause %s; recording %s\n", v->cause->id, style->recording);
}

void report_text(FILE *out, const struct verdict *v, const struct text_style *style)
{
	struct wrap w;

	wrap_init(&w, out, style);
	if (!strcmp(v->cause->id, "none")) {
		if (v->notes)
			report_line(out, v, style ? style->recording : NULL);
		else
			fputs("cuwhy: no CUDA failure\n", out);
		return;
	}
	text_headline(&w, v);
	text_where(&w, v);
	text_what(&w, v);
	text_said(&w, "WHY", v->why);
	text_suspects(&w, v);
	if (v->memory.ledger) {
		wrap_label(&w, "HELD");
		ledger_wrap(&w, v->memory.ledger, 6);
		w.label = NULL;
	}
	text_said(&w, "FIX", v->fix);
	text_sure(&w, v);
	text_rest(&w, v, style);
}

void report_first(FILE *out, const struct verdict *v)
{
	if (v->where.file)
		fprintf(out, "cuwhy: the first to fail was process %u: %s at %s:%u\n", v->pid, v->cause->id,
			v->where.shown, v->where.number);
	else
		fprintf(out, "cuwhy: the first to fail was process %u: %s\n", v->pid, v->cause->id);
}

void report_line(FILE *out, const struct verdict *v, const char *recording)
{
	const struct verdict *n = v->notes;
	size_t count = verdict_notes(v);
	struct wrap w;
	char *text, place[512] = "";

	if (!n)
		return;
	wrap_init(&w, out, NULL);
	if (n->where.file)
		snprintf(place, sizeof(place), " at %s:%u", n->where.shown, n->where.number);
	text = xasprintf("cuwhy: %s handled by the program: %s (%s)%s%s%s%s",
			 count == 1 ? "a CUDA failure was" : "CUDA failures were", n->title, n->cause->id,
			 place, count == 1 ? "" : ", and others", recording ? "; recording " : "",
			 recording ? recording : "");
	wrap_heading(&w, text);
	free(text);
}

void report_unrelated(FILE *out, const struct verdict *v, const struct text_style *style)
{
	struct wrap w;

	wrap_init(&w, out, style);
	for (const struct said *s = v->evidence; s; s = s->next)
		wrap_plain(&w, 2, s->text);
}
