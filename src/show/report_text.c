/* SPDX-License-Identifier: Apache-2.0
 * The verdict as text: WHERE, WHAT, WHY, FIX, CONFIDENCE, ASK. Short by default: it is read at three in the morning. What is left out is
 * named in the last line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "show/report_ledger.h"
#include "show/report_wrap.h"
#include "cuwhy/format.h"
#include "find/fault/observe_dump.h"
#include "find/memory/observe_snapshot.h"
#include "find/words/observe.h"
#include "verdict/verdict.h"
#include "verdict/rules/question.h"
#include "show/report.h"
#include "show/report_live.h"

#define WHY_SHORT 3	/* statements */
#define FIX_SHORT 2
#define SUSPECTS_SHORT 4

struct answer {
	struct wrap w;
	const struct verdict *v;
	bool verbose;
	size_t more_why, more_fix;	/* left out */
	bool more_what, more_memory, more_causes;
};

static bool is_text(const struct verdict *v)
{
	return case_is_from(&v->c, TEXT_OBSERVER);
}

static void text_headline(struct wrap *w, const struct verdict *v)
{
	/* do not present the first of several candidates as a fact */
	const char *perhaps = is_text(v) && v->sure == SURE_POSSIBLE && v->n_candidates ? "perhaps: " : "";
	unsigned code = (unsigned)fact_number(&v->c, FACT_error_code, 0);
	char *text = code ? xasprintf("cuwhy: %s%s (CUDA error %u)", perhaps, v->title, code)
			  : xasprintf("cuwhy: %s%s", perhaps, v->title);

	wrap_failure(w, text);
	free(text);
	putc('\n', w->out);
}

static void text_line(struct wrap *w, const struct line *l)
{
	bool named = l->function && l->function[0] != '<';

	if (named)
		wrap_printf(w, "%s:%u in %s()", l->shown, l->number, l->function);
	else
		wrap_printf(w, "%s:%u", l->shown, l->number);
	if (l->source)
		wrap_source(w, l->source);
}

#define WAITING_SHOWN 4

static void text_waiting(struct wrap *w, const struct verdict *v)
{
	for (size_t i = 0; i < v->c.n_waiting && i < WAITING_SHOWN; i++) {
		const struct waiting *t = &v->c.waiting[i];
		const char *how = t->polls ? "polled for it with" : "waited for it in";

		if (line_same(&t->line, &v->c.line[LINE_where]))
			wrap_printf(w, "this line waited %llu s in %s, for work that was launched earlier",
				    (unsigned long long)t->seconds, t->api);
		else if (t->line.file)
			wrap_printf(w, "the program %s %s at %s:%u, for %llu s", how, t->api, t->line.shown,
				    t->line.number, (unsigned long long)t->seconds);
		else
			wrap_printf(w, "the program %s %s in thread %u, for %llu s", how, t->api, t->tid,
				    (unsigned long long)t->seconds);
	}
	if (v->c.n_waiting > WAITING_SHOWN)
		wrap_printf(w, "and in %zu more thread%s", v->c.n_waiting - WAITING_SHOWN,
			    v->c.n_waiting - WAITING_SHOWN == 1 ? "" : "s");
}

static void text_other_lines(struct wrap *w, const struct verdict *v)
{
	const char *node = fact_text_or_null(&v->c, FACT_torch_node);

	if (v->c.line[LINE_where].library)
		wrap_text(w, "this is library code: no line of your own was on the stack");
	if (fact_true(&v->c, FACT_error_async) && v->c.line[LINE_where].file && v->c.n_suspects != 1 &&
	    (!case_observed(&v->c, GROUP_fault) || is_text(v)))
		wrap_text(w, "the error was noticed here; the work that caused it was launched earlier");
	for (size_t i = 0; i < v->c.n_or; i++)
		wrap_printf(w, "or %s:%u, which launched the same kernel: they cannot be told apart", v->c.or[i].shown,
			    v->c.or[i].number);
	text_waiting(w, v);
	if (v->c.line[LINE_noticed].file && !v->c.n_waiting &&
	    !line_same(&v->c.line[LINE_noticed], &v->c.line[LINE_where]) &&
	    !line_same(&v->c.line[LINE_noticed], &v->c.line[LINE_asked]) &&
	    !line_same(&v->c.line[LINE_noticed], &v->c.line[LINE_backward]))
		wrap_printf(w, "Python's traceback says %s:%u. That is where the error was noticed.",
			    v->c.line[LINE_noticed].shown, v->c.line[LINE_noticed].number);
	if (fact_known(&v->c, FACT_autograd_changed))
		wrap_printf(w, "the gradient of %s:%u%s%s needs what this line overwrote; backward was called at %s:%u",
			    v->c.line[LINE_forward].shown, v->c.line[LINE_forward].number, node ? ", in " : "",
			    node ? node : "", v->c.line[LINE_backward].shown, v->c.line[LINE_backward].number);
	else if (v->c.line[LINE_backward].file && !line_same(&v->c.line[LINE_backward], &v->c.line[LINE_where]))
		wrap_printf(w, "it failed in the backward pass of this line%s%s; backward was called at %s:%u",
			    node ? ", in " : "", node ? node : "", v->c.line[LINE_backward].shown,
			    v->c.line[LINE_backward].number);
	else if (node)
		wrap_printf(w, "in the backward pass, in %s", node);
	if (v->c.line[LINE_forward].file && !fact_known(&v->c, FACT_autograd_changed) &&
	    !line_same(&v->c.line[LINE_forward], &v->c.line[LINE_where]))
		wrap_printf(w, "the forward line of that gradient is %s:%u", v->c.line[LINE_forward].shown,
			    v->c.line[LINE_forward].number);
	if (v->c.line[LINE_replay].file)
		wrap_printf(w, "it was captured there into a CUDA graph, which was run at %s:%u",
			    v->c.line[LINE_replay].shown, v->c.line[LINE_replay].number);
	if (v->c.line[LINE_capture].file)
		wrap_printf(w, "a graph capture was in progress, started at %s:%u", v->c.line[LINE_capture].shown,
			    v->c.line[LINE_capture].number);
}

#define TENSORS_SHORT 4
#define TENSORS_LONG 16

/* Those that the line names; with -v all of the function. Where another line is blamed, they are not those of that line. */
static void text_tensors(struct wrap *w, const struct casefile *c, bool verbose)
{
	const struct line *where = &c->line[LINE_where];
	size_t most = verbose ? TENSORS_LONG : TENSORS_SHORT, n = 0, more = 0;
	struct buf b;

	buf_init(&b, 4096);
	for (size_t i = 0; i < c->n_tensors && where->function && !c->line[LINE_asked].file; i++) {
		const struct tensor_seen *x = &c->tensors[i];
		bool elsewhere = strncmp(x->device, "cuda", 4) != 0;

		if (!x->used && !verbose)
			continue;
		if (n++ < most)
			buf_printf(&b, "%s%s %s %s%s%s", n > 1 ? ", " : "", x->name, x->dtype, x->shape,
				   str_if(elsewhere, " on "), str_if(elsewhere, x->device));
		else
			more++;
	}
	if (more)
		buf_printf(&b, " and %zu more", more);
	if (n && c->tensors_late)
		wrap_printf(w, "tensors in %s%s when it was noticed: %s",
			    where->function[0] == '<' ? "the program" : where->function,
			    where->function[0] == '<' ? "" : "()", b.data);
	else if (n)
		wrap_printf(w, "tensors here: %s", b.data);
	buf_release(&b);
}

static void text_place(struct wrap *w, const struct verdict *v, bool verbose)
{
	const struct line *caller = &v->c.line[LINE_caller];

	wrap_label(w, "WHERE");
	if (v->c.line[LINE_where].file)
		text_line(w, &v->c.line[LINE_where]);
	else if (case_is_from(&v->c, DUMP_OBSERVER))
		wrap_text(w, v->c.no_lines);
	else if (v->c.no_lines)
		wrap_printf(w, "the line is not known: %s", v->c.no_lines);
	else
		wrap_text(w, "the line is not known");
	text_tensors(w, &v->c, verbose);
	if (caller->file && !line_same(caller, &v->c.line[LINE_backward]))
		wrap_printf(w, "called at %s:%u%s%s", caller->shown, caller->number, caller->source ? "    " : "",
			    caller->source ? caller->source : "");
	if (v->c.line[LINE_asked].file)
		wrap_printf(w, "the request that failed came from %s:%u%s%s", v->c.line[LINE_asked].shown,
			    v->c.line[LINE_asked].number, fact_known(&v->c, FACT_turn_words) ? ", in " : "",
			    fact_text(&v->c, FACT_turn_words));
	else if (fact_true(&v->c, FACT_oom_is) && fact_known(&v->c, FACT_turn_words))
		wrap_printf(w, "in %s", fact_text(&v->c, FACT_turn_words));
	text_other_lines(w, v);
	if (v->rank != CW_UNKNOWN && is_text(v))
		wrap_printf(w, "rank %u", v->rank);
	else if (v->rank != CW_UNKNOWN)
		wrap_printf(w, "rank %u, process %u", v->rank, v->pid);
	if (is_text(v) && fact_known(&v->c, FACT_text_line))
		wrap_printf(w, "the error is on line %.0f of %s", fact_number(&v->c, FACT_text_line, 0),
			    fact_text(&v->c, FACT_text_file));
}

#define KERNEL_NAME_MAX 160	/* C++ template names go on for pages */

/* As much of the driver's own line as is known. */
static void text_assert(struct wrap *w, const struct casefile *c)
{
	const char *condition = fact_text_or_null(c, FACT_assert_condition),
		   *file = fact_text_or_null(c, FACT_assert_file);
	const char *function = fact_text_or_null(c, FACT_assert_function),
		   *one_of = fact_text_or_null(c, FACT_assert_one_of);
	char line[16] = "";

	if (fact_known(c, FACT_assert_line))
		snprintf(line, sizeof(line), ":%u", (unsigned)fact_number(c, FACT_assert_line, 0));
	if (condition)
		wrap_printf(w, "Assertion `%s` failed%s%s%s%s%s", condition, str_if(file, " at "), str_given(file),
			    str_if(file, line), str_if(function, " in "), str_given(function));
	else if (file)
		wrap_printf(w, "an assertion failed at %s%s%s%s; its condition is %s", file, line,
			    str_if(function, " in "), str_given(function), one_of ? one_of : "not in the dump");
}

static void text_thread(struct wrap *w, const struct casefile *c)
{
	const char *access = fact_text_or_null(c, FACT_fault_access), *address = fact_text_or_null(c, FACT_fault_address);
	const uint32_t *block = c->value[FACT_fault_block].triple, *thread = c->value[FACT_fault_thread].triple;
	double bytes = fact_number(c, FACT_fault_bytes, 0), threads = fact_number(c, FACT_fault_threads, 0);
	char did[96] = "", at[160] = "", more[64] = "";

	if (access)
		snprintf(did, sizeof(did), " %s %.0f byte%s", access, bytes, bytes == 1 ? "" : "s");
	if (access && address)
		snprintf(at, sizeof(at), " at %s", address);
	if (threads > 1)
		snprintf(more, sizeof(more), ", and %.0f more thread%s", threads - 1, threads == 2 ? "" : "s");
	wrap_printf(w, "block (%u,%u,%u) thread (%u,%u,%u)%s%s%s", block[0], block[1], block[2], thread[0], thread[1],
		    thread[2], did, at, more);
}

static void text_fault(struct wrap *w, const struct casefile *c)
{
	const char *instruction = fact_text_or_null(c, FACT_fault_instruction), *pc = fact_text_or_null(c, FACT_fault_pc);
	const char *exception = fact_text_or_null(c, FACT_fault_exception), *what = fact_text(c, FACT_fault_what);

	text_assert(w, c);
	if (fact_known(c, FACT_fault_block))
		text_thread(w, c);
	if (pc)
		wrap_printf(w, "%s%sat %s  (%s)", str_given(instruction), str_if(instruction, " "), pc,
			    exception ? exception : what);
	else if (exception)
		wrap_printf(w, "%s (%s)", what, exception);
	else
		wrap_text(w, what);
}

#define STANDING_SHOWN 6

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void text_standing(struct wrap *w, const struct casefile *c)
{
	size_t threads = (size_t)fact_number(c, FACT_fault_threads, 0), rest = c->elsewhere;

	wrap_printf(w, "running: %zu thread%s in %zu warp%s of %zu block%s, which %s", threads, plural(threads),
		    c->warps, plural(c->warps), c->blocks, plural(c->blocks), threads == 1 ? "is" : "are");
	for (size_t i = 0; i < c->n_standing; i++) {
		if (i < STANDING_SHOWN)
			wrap_printf(w, "  at %s  (%zu thread%s)", c->standing[i].pc, c->standing[i].threads,
				    plural(c->standing[i].threads));
		else
			rest += c->standing[i].threads;
	}
	if (rest)
		wrap_printf(w, "  elsewhere  (%zu thread%s)", rest, plural(rest));
}

static void text_kernel(struct wrap *w, const struct casefile *c)
{
	const uint32_t *grid = c->value[FACT_kernel_grid].triple, *block = c->value[FACT_kernel_block].triple;
	const char *name = fact_text_or_null(c, FACT_kernel_name);

	if (name && strlen(name) > KERNEL_NAME_MAX)
		name = fact_text_or_null(c, FACT_kernel_short);
	if (name)
		wrap_printf(w, "kernel %s", name);
	if (fact_known(c, FACT_kernel_grid) && !fact_known(c, FACT_kernel_shared))	/* a dump says nothing else about the launch */
		wrap_printf(w, "%sgrid %ux%ux%u  block %ux%ux%u", name ? "" : "a kernel, ", grid[0], grid[1], grid[2],
			    block[0], block[1], block[2]);
	else if (fact_known(c, FACT_kernel_grid))
		wrap_printf(w, "%sgrid %ux%ux%u  block %ux%ux%u  shared %.0f  stream 0x%llx", name ? "" : "a kernel, ",
			    grid[0], grid[1], grid[2], block[0], block[1], block[2],
			    fact_number(c, FACT_kernel_shared, 0),
			    (unsigned long long)fact_number(c, FACT_kernel_stream, 0));
}

/* No call failed: what the program was told instead. Nothing, if nobody saw that. */
static void text_told(struct wrap *w, const struct casefile *c)
{
	const char *type = fact_text_or_null(c, FACT_python_type), *message = fact_text_or_null(c, FACT_check_message);

	if (!strcmp(fact_text(c, FACT_error_source), "torch-check"))
		wrap_text(w, "PyTorch rejected an operation before it reached the GPU");
	else if (type)
		wrap_printf(w, "the program ended with %s%s%s", type, message ? ": " : "", message ? message : "");
}

/* The call that failed, or what to say if there was none. */
static void text_call(struct wrap *w, const struct casefile *c)
{
	const char *api = fact_text_or_null(c, FACT_error_api), *string = fact_text_or_null(c, FACT_error_string);
	const char *name = fact_text_or_null(c, FACT_error_name);
	unsigned code = (unsigned)fact_number(c, FACT_error_code, 0);

	if (api && code)
		wrap_printf(w, "%s returned %u: %s (%s)", api, code, string ? string : "?", name ? name : "no name");
	else if (code && string)
		wrap_printf(w, "CUDA returned %u: %s (%s)", code, string, name ? name : "no name");
	else if (case_is_from(c, TEXT_OBSERVER))
		wrap_text(w, string ? string : "the text has no error message; the evidence is what else it says");
	else if (c->n_waiting)
		wrap_printf(w, "%s did not return", api ? api : "a call");
	else if (case_is_from(c, SNAPSHOT_OBSERVER))
		wrap_text(w, "an allocation failed in PyTorch's allocator");
	else if (!fact_known(c, FACT_kernel_name) && !fact_known(c, FACT_kernel_grid) && api)
		wrap_text(w, api);
	else if (!fact_known(c, FACT_kernel_name) && !fact_known(c, FACT_kernel_grid))
		text_told(w, c);
}

/* Which kernel, which assertion, or which message of a text. */
static void text_what_short(struct answer *a)
{
	const struct casefile *c = &a->v->c;
	const char *kernel = fact_text_or_null(c, FACT_kernel_short), *name = fact_text_or_null(c, FACT_kernel_name);

	wrap_label(&a->w, "WHAT");
	if (kernel || name)
		wrap_printf(&a->w, "kernel %s", kernel ? kernel : name);
	if (case_observed(c, GROUP_fault))
		text_assert(&a->w, c);
	if (!(kernel || name) && (is_text(a->v) || !fact_known(c, FACT_error_api)))
		text_call(&a->w, c);
	a->more_what = !is_text(a->v) && (fact_known(c, FACT_error_api) || fact_known(c, FACT_kernel_grid) ||
					  case_observed(c, GROUP_fault));
	a->w.label = NULL;
}

/* The kernel, the call that failed, what a core dump says about the fault. */
static void text_what(struct answer *a)
{
	struct wrap *w = &a->w;
	const struct casefile *c = &a->v->c;
	double count = fact_number(c, FACT_error_count, 1);

	if (!a->verbose) {
		text_what_short(a);
		return;
	}
	wrap_label(w, "WHAT");
	text_kernel(w, c);
	if (c->live)
		live_wrap(w, c->live);
	else if (c->n_standing)
		text_standing(w, c);
	else if (case_observed(c, GROUP_fault))
		text_fault(w, c);
	else
		text_call(w, c);
	if (count > 1)
		wrap_printf(w, "seen %.0f times", count);
	w->label = NULL;
}

static void text_suspects(struct answer *a)
{
	struct wrap *w = &a->w;
	const struct verdict *v = a->v;
	size_t most = a->verbose || v->c.n_suspects <= SUSPECTS_SHORT ? v->c.n_suspects : SUSPECTS_SHORT;

	if (v->c.n_suspects < 2)
		return;
	wrap_printf(w, "%.0f launches since the last successful synchronization are suspects; their lines, newest first:",
		    fact_number(&v->c, FACT_suspects_launches, 0));
	for (size_t i = 0; i < most; i++) {
		const struct suspect_line *s = &v->c.suspects[i];
		const char *kernel = s->kernel ? s->kernel : "an unnamed kernel";
		const char *more = s->launches > 1 ? " and more" : "";

		if (s->line.file)
			wrap_printf(w, "  %s:%u  %s%s", s->line.shown, s->line.number, kernel, more);
		else
			wrap_printf(w, "  no line known  %s%s", kernel, more);
	}
	if (most < v->c.n_suspects)
		wrap_printf(w, "  and %zu more", v->c.n_suspects - most);
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

/* What would tell the candidates apart. */
static void text_question(struct wrap *w, const struct verdict *v)
{
	const struct kb_question *q = verdict_question(v);

	if (q)
		wrap_said(w, "ASK", &(struct said){.text = AT(q->text), .command = AT(q->command)}, 1);
}

/* The next candidates, each with what speaks for it. */
static size_t text_candidates(struct wrap *w, const struct verdict *v)
{
	size_t i;

	for (i = 1; i < v->n_candidates && i < QUESTION_CAUSES; i++) {
		const struct match *m = &v->candidates[i];

		wrap_printf(w, "or %s, %s: %s", AT(m->cause->id), certainty_word((enum certainty)m->sure),
			    m->because ? m->because : AT(m->cause->title));
	}
	return i;
}

static void text_confidence(struct answer *a)
{
	struct wrap *w = &a->w;
	const struct verdict *v = a->v;
	const char *others[16];
	size_t first = 1, n = 0;

	wrap_label(w, "CONFIDENCE");
	wrap_printf(w, "%s: %s", certainty_word(v->sure),
		    v->because		      ? v->because
		    : v->sure == SURE_CERTAIN ? AT(v->cause->title)
					      : "the message fits it, and nothing tells it from other causes");
	if (fact_true(&v->c, FACT_process_sim))
		wrap_text(w, "the GPU was simulated");
	if (v->sure == SURE_CERTAIN)
		return;
	if (is_text(v) && (a->verbose || v->sure == SURE_POSSIBLE))
		first = text_candidates(w, v);
	for (size_t i = first; i < v->n_candidates && n < 16; i++)
		others[n++] = AT(v->candidates[i].cause->id);
	a->more_causes = !a->verbose && (n || v->n_unchecked);
	if (!a->verbose)
		return;
	text_ids(w, "it could also be", others, n);
	text_ids(w, "could not be checked:", v->unchecked, v->n_unchecked);
}

static void text_other(struct wrap *w, const struct verdict *o)
{
	char line[600];

	if (o->victim_of)
		snprintf(line, sizeof(line), "%s", o->title);
	else if (!o->pid)	/* not a process: a text, a dump, a snapshot */
		snprintf(line, sizeof(line), "another input shows %s (%s)", AT(o->cause->id), certainty_word(o->sure));
	else if (o->c.line[LINE_where].file)
		snprintf(line, sizeof(line), "then process %u failed too: %s at %s:%u", o->pid, AT(o->cause->id),
			 o->c.line[LINE_where].shown, o->c.line[LINE_where].number);
	else
		snprintf(line, sizeof(line), "then process %u failed too: %s", o->pid, AT(o->cause->id));
	wrap_plain(w, 2, line);
}

/* Which of several inputs were joined, and which were not; `w` NULL: only whether there is anything to say. */
static bool text_inputs(struct wrap *w, const struct verdict *v)
{
	bool any = false;

	for (const struct said *s = v->evidence; s; s = s->next) {
		if (!s->source || strcmp(s->source, "input") != 0)
			continue;
		any = true;
		if (w)
			wrap_plain(w, 2, s->text);
	}
	return any;
}

/* What the short form left out, and how to see it. */
static void text_more(struct answer *a, const struct text_style *style)
{
	const char *parts[5];
	char why[48], fix[48], *text;
	size_t n = 0;

	if (a->more_causes)
		parts[n++] = "other causes";
	if (a->more_what)
		parts[n++] = "the call that failed";
	if (a->more_why) {
		snprintf(why, sizeof(why), "%zu more reason%s", a->more_why, plural(a->more_why));
		parts[n++] = why;
	}
	if (a->more_memory)
		parts[n++] = "what held the memory";
	if (a->more_fix) {
		snprintf(fix, sizeof(fix), "%zu more fix%s", a->more_fix, a->more_fix == 1 ? "" : "es");
		parts[n++] = fix;
	}
	if (!n)
		return;
	text = style && style->more ? xasprintf("'%s' also shows ", style->more) : xstrdup("-v also shows ");
	for (size_t i = 0; i < n; i++) {
		char *longer = xasprintf("%s%s%s", text, !i ? "" : i + 1 < n ? ", " : " and ", parts[i]);

		free(text);
		text = longer;
	}
	wrap_plain(&a->w, 2, text);
	free(text);
}

static bool has_more(const struct answer *a)
{
	return a->more_causes || a->more_what || a->more_why || a->more_memory || a->more_fix;
}

static void text_rest(struct answer *a, const struct text_style *style)
{
	struct wrap *w = &a->w;
	const struct verdict *v = a->v;
	size_t notes = verdict_notes(v);

	if (v->others || notes || text_inputs(NULL, v) || (style && style->recording) || has_more(a))
		putc('\n', w->out);
	text_inputs(w, v);
	for (const struct verdict *o = v->others; o; o = o->next)
		text_other(w, o);
	if (notes)
		fprintf(w->out, "  %zu other CUDA failure%s %s handled by the program\n", notes,
			notes == 1 ? "" : "s", notes == 1 ? "was" : "were");
	w->look = LOOK_DIM;
	if (style && style->recording)
		wrap_plain_printf(w, 2, "cause %s; recording %s", AT(v->cause->id), style->recording);
	text_more(a, style);
	w->look = LOOK_PLAIN;
}

/* Is it one of the words of room.enough? The rules that say "nothing else would have been enough" count the same words. */
static bool counts_as_enough(const struct casefile *c, const char *way)
{
	const char *at = fact_text(c, FACT_room_enough);
	size_t len = strlen(way);

	for (; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == len && strncmp(at, way, len) == 0)
			return true;
	return false;
}

/* No backward runs in the loop that left the graphs, or has run before: they are of a pass that may be on its way to one. */
static const char *room_condition(const struct casefile *c, enum fact_id way)
{
	bool waits = (fact_known(c, FACT_graph_loop_run) && !fact_true(c, FACT_graph_loop_run)) ||
		     fact_true(c, FACT_turn_first_pass);

	return way == FACT_room_graphs && waits ? ", if backward does not need them" : "";
}

/* What would have let the program go on, what would have done so for this request only, and what would not. */
static void text_room(struct answer *a)
{
	struct wrap *w = &a->w;
	const struct casefile *c = &a->v->c;
	static const struct { enum fact_id fact; const char *way, *words; } ways[] = {
		{FACT_room_graphs, "graphs", "without the autograd graphs that earlier iterations left"},
		{FACT_room_grow, "growth", "without the tensors that earlier iterations left"},
		{FACT_room_packed, "gaps", "without gaps between tensors"},
		{FACT_room_expandable, "gaps", "with expandable_segments:True"},
		{FACT_room_pools, "pools", "without PyTorch's private pools"},
		{FACT_room_others, "others", "without the other processes"},
		{FACT_room_library, "library", "without the other library's memory"},
		{FACT_room_no_grad, NULL, "without the activations, if this is inference"},
	};
	enum fits { FITS, FITS_ONCE, FITS_NOT };
	char bytes[32];

	if (!fact_true(c, FACT_room_known))
		return;
	wrap_label(w, "FITS");
	a->more_memory = !a->verbose;
	for (int shown = FITS; shown <= (a->verbose ? FITS_NOT : FITS); shown++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			double spare = fact_number(c, ways[i].fact, 0);
			enum fits fits = spare < 0 ? FITS_NOT
					 : !ways[i].way || counts_as_enough(c, ways[i].way) ? FITS : FITS_ONCE;

			if (!fact_known(c, ways[i].fact) || (int)fits != shown)
				continue;
			format_bytes(bytes, sizeof(bytes), spare < 0 ? -spare : spare);
			if (fits == FITS)
				wrap_printf(w, "would have fit %s%s: %s to spare", ways[i].words,
					    room_condition(c, ways[i].fact), bytes);
			else if (fits == FITS_ONCE)
				wrap_printf(w, "would only have run a little longer %s: %s to spare", ways[i].words,
					    bytes);
			else
				wrap_printf(w, "would not have fit %s either: %s too little", ways[i].words,
					    bytes);
		}
	w->label = NULL;
}

/* What the program ran with. */
static void text_versions(struct answer *a)
{
	static const struct { enum fact_id fact; const char *name; } rows[] = {
		{FACT_versions_torch, "PyTorch "}, {FACT_versions_cuda, "CUDA "},
		{FACT_versions_cudnn, "cuDNN "},   {FACT_versions_nccl, "NCCL "},
		{FACT_versions_driver, "driver "}, {FACT_versions_gpu, ""},
		{FACT_versions_python, "Python "}, {FACT_versions_os, ""},
	};
	char *text = NULL;
	size_t size = 0;
	FILE *line = a->verbose ? open_memstream(&text, &size) : NULL;

	if (!line)
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fact_known(&a->v->c, rows[i].fact))
			fprintf(line, "%s%s%s", ftell(line) ? ", " : "", rows[i].name, fact_text(&a->v->c, rows[i].fact));
	if (!fclose(line) && size) {
		wrap_label(&a->w, "WITH");
		wrap_text(&a->w, text);
	}
	free(text);
}

static void text_held(struct answer *a)
{
	if (!a->v->c.ledger)
		return;
	a->more_memory = !a->verbose;
	if (!a->verbose)
		return;
	wrap_label(&a->w, "HELD");
	ledger_wrap(&a->w, a->v->c.ledger, 6);
	a->w.label = NULL;
}

void report_text(FILE *out, const struct verdict *v, const struct text_style *style)
{
	struct answer a = {.v = v, .verbose = style && style->verbose};

	wrap_init(&a.w, out, style);
	if (!strcmp(AT(v->cause->id), "none")) {
		if (v->notes)
			report_line(out, v, style ? style->recording : NULL);
		else
			fputs("cuwhy: no CUDA failure\n", out);
		return;
	}
	text_headline(&a.w, v);
	text_place(&a.w, v, a.verbose);
	text_what(&a);
	a.more_why = wrap_said(&a.w, "WHY", v->why, a.verbose ? SIZE_MAX : WHY_SHORT);
	text_room(&a);
	text_suspects(&a);
	text_held(&a);
	a.more_fix = wrap_said(&a.w, "FIX", v->fix, a.verbose ? SIZE_MAX : FIX_SHORT);
	text_versions(&a);
	text_confidence(&a);
	text_question(&a.w, v);
	text_rest(&a, style);
}

void report_victim(FILE *out, const struct verdict *v)
{
	if (v->victim_of)
		fprintf(out, "cuwhy: %s\n", v->title);
}

void report_first(FILE *out, const struct verdict *v)
{
	if (v->c.line[LINE_where].file)
		fprintf(out, "cuwhy: the first to fail was process %u: %s at %s:%u\n", v->pid, AT(v->cause->id),
			v->c.line[LINE_where].shown, v->c.line[LINE_where].number);
	else
		fprintf(out, "cuwhy: the first to fail was process %u: %s\n", v->pid, AT(v->cause->id));
}

void report_line(FILE *out, const struct verdict *v, const char *recording)
{
	const struct verdict *n = v->notes;
	size_t count = verdict_notes(v);
	struct wrap w;
	char *text, place[512] = "";
	const char *was = count == 1 ? "was handled by the program" : "were handled by the program";

	if (!n)
		return;
	wrap_init(&w, out, NULL);
	if (n->c.line[LINE_where].file)
		snprintf(place, sizeof(place), " at %s:%u", n->c.line[LINE_where].shown, n->c.line[LINE_where].number);
	for (const struct verdict *x = n; x; x = x->next)
		if (x->last)
			was = "did not end the program, but may have ended a thread: nothing was launched afterwards";
	text = xasprintf("cuwhy: %s %s: %s (%s)%s%s%s%s", count == 1 ? "a CUDA failure" : "CUDA failures", was,
			 n->title, AT(n->cause->id), place, count == 1 ? "" : ", and others",
			 str_if(recording, "; recording "), str_given(recording));
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
