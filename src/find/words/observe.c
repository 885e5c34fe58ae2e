/* SPDX-License-Identifier: Apache-2.0
 * Facts from a text (see observe.h).
 */
#include "find/words/observe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/needles.h"
#include "base/str.h"
#include "case/assert.h"
#include "case/known_message.h"
#include "case/message.h"
#include "case/line.h"
#include "formats/xid.h"
#include "find/words/failed_at.h"
#include "find/words/log.h"
#include "compat/cuda_errors.h"
#include "read/text/said.h"

#define STACK_TEXT_MAX 12000

static const struct { const char *phase, *words; } phases[] = {
#define MARK_PHASE(phase, words) {phase, words},
#include "kb/text_marks.def"
};

static const struct { const char *phase, *words; } frames[] = {
#define MARK_FRAME(phase, words) {phase, words},
#include "kb/text_marks.def"
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void observe_status(struct casefile *f, const char *s)
{

	fact_set_text(f, FACT_text_status, "");
	for (size_t i = 0; i < said_rows(SAID_status); i++)
		for (const char *at = s; (at = strstr(at, said_words(SAID_status, i))) != NULL; at++) {
			size_t n = 0;

			while (isalnum((unsigned char)at[n]) || at[n] == '_')
				n++;
			/* "Check failed: status == CUDNN_STATUS_SUCCESS (3 vs. 0)  CUDNN_STATUS_BAD_PARAM" */
			if (n > 8 && !strncmp(at + n - 8, "_SUCCESS", 8))
				continue;
			fact_set_text(f, FACT_text_status, pool_copy(f->pool, at, n));
			return;
		}
}

/* Statuses that libraries return when an allocation fails, among other reasons. */
static const char *masked_status(const char *text)
{
	size_t row = 0;

	return says_before(text, SAID_masked_status, &row) ? said_words(SAID_masked_status, row - 1) : "";
}

static void observe_event(struct casefile *f, const struct text_event *e, uint32_t code)
{
	const char *type = e ? e->type : "", *message = e ? e->message : "";
	const char *dot = strrchr(type, '.');

	fact_set_number(f, FACT_error_code, code);
	fact_set_text(f, FACT_error_name, code ? cuda_error_name(code) : NULL);
	fact_set_text(f, FACT_error_string,
		      code ? cuda_error_text(code) : pool_copy(f->pool, message, strcspn(message, "\n")));
	fact_set_text(f, FACT_error_text, message);
	fact_set_text(f, FACT_error_source, TEXT_OBSERVER);
	fact_set_flag(f, FACT_error_async, cuda_error_sticky(code) == 1);
	fact_set_flag(f, FACT_error_sticky, cuda_error_sticky(code) == 1);
	fact_set_flag(f, FACT_error_raised, type[0] != '\0');
	fact_set_number(f, FACT_error_count, e && e->count < UINT32_MAX ? (double)e->count : 1);
	observe_status(f, message);
	fact_set_text(f, FACT_masked_status, masked_status(message));
	fact_set_flag(f, FACT_masked_oom, false);
	if (!e)
		return;
	if (type[0])
		fact_set_text(f, FACT_python_type, dot ? dot + 1 : type);
	fact_set_text(f, FACT_python_message, message);
	fact_set_text(f, FACT_check_message, pool_copy(f->pool, message, strcspn(message, "\n")));
}

static const char *frame_text(struct casefile *f, const struct text_frame *t)
{
	const char *function = t->function ? t->function : "", *source = t->source ? t->source : "";

	if (!t->file)
		return pool_printf(f->pool, ": %s", source);
	return pool_printf(f->pool, "%s:%u in %s: %s", t->file, t->line, function, source);
}

enum owner text_frame_owner(const char *file)
{
	char plain[400];

	str_copy(plain, sizeof(plain), file);
	for (char *s = plain; *s; s++)
		if (*s == '\\')
			*s = '/';
	if (str_starts(plain, "torch/") || strstr(plain, "/torch/nn/") || strstr(plain, "/torch/cuda/") ||
	    strstr(plain, "/torch/utils/"))
		return OWNER_TORCH;
	if (str_starts(plain, "triton/"))
		return OWNER_TRITON;
	return frame_owner(plain, "");
}

int text_where(const struct text_event *e)
{
	int library = -1;

	for (size_t i = e->n_frames; i-- > 0;) {
		enum owner owner;

		if (!e->frame[i].file)
			continue;
		owner = text_frame_owner(e->frame[i].file);
		if (owner == OWNER_USER)
			return (int)i;
		if (library < 0 && owner == OWNER_LIBRARY)
			library = (int)i;
	}
	return library;
}

static struct line line_of_frame(struct casefile *c, const struct text_frame *t)
{
	struct line l = {.file = pool_strdup(c->pool, t->file), .number = t->line};

	l.shown = l.file;
	l.function = t->function ? pool_strdup(c->pool, t->function) : NULL;
	l.source = t->source ? pool_strdup(c->pool, t->source) : NULL;
	return l;
}

/* A recording of the same failure knows its lines better. */
static void observe_traceback(struct casefile *c, const struct text_event *e)
{
	struct line *where = &c->line[LINE_where];
	int at = e ? text_where(e) : -1;

	if (where->file)
		return;
	c->n_stack = 0;
	c->stack = pool_alloc(c->pool, (e ? e->n_frames + 1 : 1) * sizeof(*c->stack));
	for (size_t i = e ? e->n_frames : 0; i-- > 0;)
		if (e->frame[i].file)
			c->stack[c->n_stack++] = line_of_frame(c, &e->frame[i]);
	if (at < 0) {
		c->no_lines = c->no_lines ? c->no_lines : "the text has no traceback of your own code";
		return;
	}
	*where = line_of_frame(c, &e->frame[at]);
	where->library = strstr(where->file, "site-packages") || strstr(where->file, "dist-packages");
	c->no_lines = NULL;
}

static void fill_where(struct casefile *f, const struct text_event *e)
{
	const char *all = "", *top = "";
	int at = e ? text_where(e) : -1;

	for (size_t i = e ? e->n_frames : 0; i-- > 0;) {
		const char *line = frame_text(f, &e->frame[i]);

		top = top[0] ? top : line;
		if (strlen(all) + strlen(line) < STACK_TEXT_MAX)
			all = pool_printf(f->pool, "%s\n%s", line, all);
	}
	fact_set_text(f, FACT_text_stack, all);
	fact_set_text(f, FACT_text_top, top);
	fact_set_text(f, FACT_text_before, e ? e->before : "");
	if (at < 0)
		return;
	fact_set_text(f, FACT_where_line, pool_printf(f->pool, "%s:%u", e->frame[at].file, e->frame[at].line));
	fact_set_text(f, FACT_where_noticed, fact_text(f, FACT_where_line));
	if (e->frame[at].source)
		fact_set_text(f, FACT_where_source, e->frame[at].source);
}

static void fill_phase(struct casefile *f)
{
	const char *stack = fact_text(f, FACT_text_stack), *before = fact_text(f, FACT_text_before);
	const char *last = before;
	size_t n = strlen(before);

	/* only the last few lines before the error: what came earlier is over */
	for (int lines = 0; n > 0 && lines < 5; n--)
		if (before[n - 1] == '\n' && ++lines == 5)
			last = before + n;
	fact_set_text(f, FACT_text_phase, "");
	for (size_t i = 0; i < COUNT(phases); i++)
		if (strcasestr(stack, phases[i].words) || strcasestr(last, phases[i].words) ||
		    strcasestr(fact_text(f, FACT_error_text), phases[i].words))
			fact_set_text(f, FACT_text_phase, phases[i].phase);
	for (size_t i = 0; i < COUNT(frames) && !fact_text(f, FACT_text_phase)[0]; i++)
		if (strstr(stack, frames[i].words))
			fact_set_text(f, FACT_text_phase, frames[i].phase);
}

/* The number after `words`, or -1. */
static int number_after(const char *s, const char *words)
{
	const char *at = s ? strstr(s, words) : NULL;

	return at && isdigit((unsigned char)at[strlen(words)]) ? (int)strtol(at + strlen(words), NULL, 10) : -1;
}

/* The GPU that the message names, or the line that failed; -1: neither does. */
static int failed_device(const struct text_event *e)
{
	static const char *const before[] = {"cuda:", "GPU ", "device=", ".cuda("};
	int device = -1;

	for (size_t i = 0; i < COUNT(before) && device < 0; i++)
		device = number_after(e->message, before[i]);
	for (size_t k = e->n_frames; k-- > 0 && device < 0;)
		for (size_t i = 0; i < COUNT(before) && device < 0; i++)
			device = number_after(e->frame[k].source, before[i]);
	return device;
}

/* A row of nvidia-smi is that of the same number only where no variable gives out other numbers. */
static void fill_mode(struct casefile *f, const struct text_env *env, const struct text_event *e)
{
	int device = e ? failed_device(e) : -1;

	if (env->visible_set && device >= 0)
		device = -1;
	fact_set_text(f, FACT_text_smi_mode, compute_mode_of(&env->modes, device));
}

static const char *place_before(struct casefile *f, const struct text_event *e, const char *line, size_t len)
{
	return pool_printf(f->pool, "before %s line %llu: %.*s", e->file, (unsigned long long)e->line,
			   len < TEXT_SHOWN_MAX ? (int)len : TEXT_SHOWN_MAX, line);
}

/* In which step, and how long after its first line. */
static void fill_failed(struct casefile *f, const struct text_log *l, const struct text_event *e)
{
	static const enum fact_id of_the_line[] = {FACT_text_failed_first, FACT_text_failed_step, FACT_text_failed_epoch};
	struct failed_at at = failed_at(e ? e->before : "");
	const struct text_file *files;
	size_t n = log_files(l, &files);

	if (at.first == FAILED_LATER || (at.first == FAILED_FIRST && strcmp(fact_text(f, FACT_text_phase), "eval")))
		fact_set_flag(f, FACT_text_failed_first, at.first == FAILED_FIRST);
	if (at.step >= 0)
		fact_set_number(f, FACT_text_failed_step, at.step);
	if (at.epoch >= 0)
		fact_set_number(f, FACT_text_failed_epoch, at.epoch);
	for (size_t i = 0; at.line && i < COUNT(of_the_line); i++)
		fact_set_place(f, of_the_line[i], place_before(f, e, at.line, at.len));
	for (size_t i = 0; e && e->time && i < n; i++)
		if (files[i].name == e->file && files[i].first && e->time >= files[i].first)
			fact_set_number(f, FACT_text_failed_after, e->time - files[i].first);
}

static void assert_facts_of_text(struct casefile *f, const char *function, const char *condition, const char *file,
				 uint32_t line, const char *stack)
{
	double bound;

	fact_set_text(f, FACT_assert_kernel, function);
	fact_set_text(f, FACT_assert_function, function);
	fact_set_text(f, FACT_assert_condition, condition);
	fact_set_text(f, FACT_assert_file, file);
	if (line)
		fact_set_number(f, FACT_assert_line, line);
	fact_set_text(f, FACT_assert_about, assert_about_condition(function, condition));
	if (assert_bound_in_text(condition, &bound))
		fact_set_number(f, FACT_assert_bound, bound);
	fact_set_text(f, FACT_assert_op, says(stack, SAID_embedding) ? "embedding" : "");
	fact_set_flag(f, FACT_assert_position, assert_names_position(stack));
}

static const struct { const char *framework, *words; } out_of_memory[] = {
#define MARK_OOM(framework, words) {framework, words},
#include "kb/text_marks.def"
};

/* Whose message about memory it is: "" for PyTorch's; NULL when none of those that we know. */
static const char *framework_out_of_memory(const char *message)
{
	for (size_t i = 0; i < COUNT(out_of_memory); i++)
		if (needle_matches(out_of_memory[i].words, message, strlen(message)))
			return out_of_memory[i].framework;
	return NULL;
}

/* Ray's exception of the same name is about the host. */
static bool is_oom_type(const char *type)
{
	return strstr(type, "OutOfMemory") && !str_starts(type, "ray.");
}

static void fill_memory_of_text(struct casefile *f, const struct text_event *e, uint32_t code)
{
	const char *message = e ? e->message : "", *stack = fact_text(f, FACT_text_stack);
	const char *framework = framework_out_of_memory(message);
	bool oom = code == CODE_OUT_OF_MEMORY || (e && is_oom_type(e->type)) || strstr(message, "CUDA out of memory") ||
		   framework;
	double request, left;

	fact_set_text(f, FACT_text_framework, framework ? framework : "");
	fact_set_flag(f, FACT_oom_is, oom);
	fact_set_flag(f, FACT_load_is,
		      says(stack, SAID_loading));
	/* a failure of PyTorch's own device allocator has numbers */
	fact_set_flag(f, FACT_oom_host, oom && !strstr(message, "Tried to allocate") &&
			      (says(stack, SAID_pinning_frame) || says(message, SAID_pinning)));
	fact_set_number(f, FACT_process_local_rank, e && e->rank >= 0 ? e->rank : -1);
	facts_from_message(f, message);
	facts_from_known_message(f, message);
	fact_set_flag(f, FACT_oom_by_torch,
		      oom && says(message, SAID_by_torch));
	case_memory_parts(f);
	request = fact_number(f, FACT_oom_request, -1);
	left = fact_number(f, FACT_oom_free, -1);
	if (request >= 0 && left >= 0)
		fact_set_number(f, FACT_oom_missing, request > left ? request - left : 0);
}

static void fill_xids(struct casefile *f, const struct text_log *l)
{
	struct xid_log log = {.readable = true};
	const char *const *lines;
	const struct xid *worst = NULL;
	size_t n = log_xids(l, &lines);

	for (size_t i = 0; i < n; i++)
		xid_line(&log, lines[i], false);
	for (size_t i = 0; i < log.n; i++)
		if (!worst || xid_class(log.line[i].number) > xid_class(worst->number))
			worst = &log.line[i];
	if (!worst)
		return;
	fact_set_number(f, FACT_xid_number, worst->number);
	fact_set_text(f, FACT_xid_class, xid_class_id(xid_class(worst->number)));
	fact_set_text(f, FACT_xid_meaning, xid_meaning(worst->number));
	fact_set_text(f, FACT_xid_text, worst->text);
	fact_set_flag(f, FACT_xid_ours, true);
	fact_set_place(f, FACT_xid_number, pool_printf(f->pool, "kernel log: %s", worst->text));
}

static bool names(enum said_list list, const struct casefile *c, const char *message)
{
	return says(message, list) || says(fact_text(c, FACT_text_stack), list) ||
	       says(fact_text(c, FACT_text_before), list);
}

/* CUDA messages without a framework are PyTorch's, unless another framework is named and PyTorch is not. */
static void observe_torch(struct casefile *c, const struct text_log *l, const struct text_event *e)
{
	const char *message = e ? e->message : "";
	bool other = fact_text(c, FACT_text_framework)[0] != '\0';

	case_observe(c, GROUP_torch);
	other |= names(SAID_other_framework, c, message) || (e && says(e->type, SAID_other_framework));
	fact_set_flag(c, FACT_torch_loaded, !other || names(SAID_pytorch, c, message) || log_env(l)->torch[0]);
}

#define ASSERTS_TOLD	4

static int first_line_length(const char *text, int most)
{
	size_t n = strcspn(text, "\n");

	return n < (size_t)most ? (int)n : most;
}

static const char *event_line(struct pool *pool, const struct text_event *e, int most)
{
	if (e->cut && !e->message[0])
		return pool_printf(pool, "%s line %llu: the traceback ends here, without an exception", e->file,
				   (unsigned long long)e->line);
	return pool_printf(pool, "%s line %llu: %s%s%.*s", e->file, (unsigned long long)e->line, e->type,
			   e->type[0] ? ": " : "", first_line_length(e->message, most), e->message);
}

static void tell_error(struct casefile *c, const struct text_event *e, const struct text_assert *a, size_t n)
{

	for (size_t i = 0; i < n && i < ASSERTS_TOLD; i++)
		case_evidence(c, TEXT_OBSERVER, pool_printf(c->pool, "line %llu: Assertion `%s` failed, %llu time%s",
					  (unsigned long long)a[i].line, a[i].condition, (unsigned long long)a[i].count,
					  a[i].count == 1 ? "" : "s"));
	if (e)
		case_evidence(c, TEXT_OBSERVER, event_line(c->pool, e, TEXT_SHOWN_MAX));
	if (e && fact_text(c, FACT_message_values)[0])
		case_evidence(c, TEXT_OBSERVER,
			      pool_printf(c->pool, "%s line %llu: %s; a message of %s %s (%s)", e->file,
					  (unsigned long long)e->line, fact_text(c, FACT_message_values),
					  fact_text(c, FACT_message_package), fact_text(c, FACT_message_version),
					  fact_text(c, FACT_message_file)));
}

static const char *other_role(const struct text_log *l, const struct text_event *first, const struct text_event *e)
{
	enum restart by = first ? log_restarted(l, e, first) : RESTART_NOT;

	if (log_handled(l, e))
		return "handled, the program went on:";
	if (by == RESTART_PROGRAM)
		return e->order < first->order ? "an earlier run in the text failed with:"
					       : "a later run in the text failed with:";
	if (by)
		return e->order < first->order ? "an earlier error in the text:" : "a later error in the text:";
	return first ? "another error:" : "not CUDA's:";
}

const char *text_other_error(struct pool *pool, const struct text_log *l, const struct text_event *first,
			     const struct text_event *e)
{
	return pool_printf(pool, "%s %s", other_role(l, first, e), event_line(pool, e, TEXT_SHOWN_MAX / 2));
}

/* "(world_size=16, worker_count=9, timeout=0:30:00)", "3/4 clients joined." */
static void observe_arrivals(struct casefile *f, const char *message)
{
	const char *clients = strstr(message, " clients joined");
	double expected = 0, arrived = 0;

	while (clients && clients > message && (isdigit((unsigned char)clients[-1]) || clients[-1] == '/'))
		clients--;
	if (!message_number(message, "worker_count=", &arrived) || !message_number(message, "world_size=", &expected))
		expected = arrived = 0;
	if (clients && sscanf(clients, "%lf/%lf", &arrived, &expected) != 2)
		expected = arrived = 0;
	fact_set_number(f, FACT_text_ranks_expected, expected);
	fact_set_number(f, FACT_text_ranks_arrived, arrived);
}

static void observe_asserts(struct casefile *f, const struct text_assert *a, size_t n)
{
	if (!n)
		return;
	fact_set_number(f, FACT_text_asserts, (double)a[0].count);
	fact_set_number(f, FACT_fault_threads, (double)a[0].count);
	fact_set_text(f, FACT_fault_kind, "");	/* only core dumps can say that */
	fact_set_text(f, FACT_fault_what, "a device-side assert");
	assert_facts_of_text(f, a[0].function ? a[0].function : "", a[0].condition, a[0].file, a[0].source_line,
			     fact_text(f, FACT_text_stack));
}

/* Of several that were printed, the one that another input knows. */
static void observe_same_assert(struct casefile *c, const struct text_assert *a, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!strcmp(a[i].condition, fact_text(c, FACT_assert_condition)))
			return observe_asserts(c, &a[i], 1);
	observe_asserts(c, a, n);
}

/* After a failed assertion every call returns that error. */
static void compare_assert(struct casefile *c, const struct text_assert *a, uint32_t code, const char *who)
{
	if (cuda_errors_contradict(code, CODE_ASSERT))
		case_contradiction(c, pool_printf(c->pool, "a kernel printed that `%s` failed, but %s %u (%s)",
						  a->condition, who, code, cuda_error_name(code)));
}

/* Next to an input that knows the failure better, a text adds only what that one cannot know: a printed assertion, the
 * kernel log, the line of the traceback; and its words. Its other facts would turn on rules meant for texts alone. */
static void observe_beside(struct casefile *c, const struct text_view *v)
{
	const struct text_event *e = v->event;
	const struct text_assert *a;
	size_t n = log_asserts(v->log, v->past, e, &a);
	uint32_t code = (uint32_t)fact_number(c, FACT_error_code, 0);
	int at = e ? text_where(e) : -1;

	if (n && code == CODE_ASSERT)
		observe_same_assert(c, a, n);
	else if (n)
		compare_assert(c, a, code, "a call returned");
	if (at >= 0 && !c->line[LINE_where].file && !c->line[LINE_noticed].file)
		c->line[LINE_noticed] = line_of_frame(c, &e->frame[at]);
	if (e)
		facts_from_message(c, e->message);
	fill_xids(c, v->log);
	facts_of_settings(c, &log_env(v->log)->settings);
}

/* The rank that a collective waited for ended with an exception of its own, which may have nothing to do with GPUs. */
static void observe_other_rank(struct casefile *f, const struct text_log *l, const struct text_event *e)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);
	bool waited = e && says(e->message, SAID_waited);

	for (size_t i = 0; waited && i < n; i++) {
		const struct text_event *o = &list[i];

		if (o->rank < 0 || o->rank == e->rank || !o->raised || !o->n_frames || o->warning || o->peer || o->marked)
			continue;
		fact_set_text(f, FACT_text_rank_raised,
			      pool_printf(f->pool, "rank %d ended with %s: %.*s", o->rank, o->type,
					  (int)strcspn(o->message, "\n"), o->message));
		return;
	}
}

static void observe_alone(struct casefile *f, const struct text_view *v)
{
	const struct text_log *l = v->log;
	const struct text_event *e = v->event;
	const struct text_assert *a;
	size_t n = log_asserts(l, v->past, e, &a);
	bool first = n && (!e || a[0].order <= e->order);
	uint32_t said = e ? text_code(e->message) : 0;
	uint32_t code = first ? CODE_ASSERT : said;	/* whatever was noticed later comes from the assertion */

	fact_set_flag(f, FACT_text_is, true);
	fact_set_flag(f, FACT_text_error, (e && !e->warning) || n);
	fact_set_flag(f, FACT_text_warning, e && e->warning);
	fact_set_flag(f, FACT_text_cut, e && e->cut && !e->message[0]);
	fact_set_flag(f, FACT_text_peer, e && e->peer);
	fact_set_text(f, FACT_text_crashed, log_crashed(l));
	observe_event(f, e, code);
	observe_traceback(f, e);
	fill_where(f, e);
	fill_phase(f);
	fact_set_flag(f, FACT_text_progress, e ? e->worked : log_progress(l));
	fill_failed(f, l, e);
	fact_set_number(f, FACT_text_ranks, (double)log_ranks(l));
	observe_other_rank(f, l, e);
	observe_arrivals(f, e ? e->message : "");
	fact_set_number(f, FACT_text_asserts, 0);
	fact_set_flag(f, FACT_text_assert_first, first);
	observe_asserts(f, a, n);
	if (first)
		compare_assert(f, a, said, "the error is");
	fill_memory_of_text(f, e, code);
	facts_of_text_machine(f, log_env(l));
	fill_mode(f, log_env(l), e);
	if (fact_true(f, FACT_set_blocking))	/* the call that failed launched the kernel */
		fact_set_flag(f, FACT_error_async, false);
	fill_xids(f, l);
	observe_torch(f, l, e);
}

/* Unless another input has a call of CUDA's that failed. */
static bool is_all_there_is(const struct casefile *c)
{
	return fact_number(c, FACT_error_code, 0) == 0;
}

static void observe(struct casefile *c, const struct text_view *v, const char *observer)
{
	const char *before = case_observer(c, observer);

	if (is_all_there_is(c))
		observe_alone(c, v);
	else
		observe_beside(c, v);
	case_observer(c, before);
}

/* The text that was given can be quoted. */
static void observe_given(struct casefile *c, const struct text_view *v)
{
	const char *before = case_observer(c, TEXT_OBSERVER);
	const struct text_event *e = v->event;
	const struct text_assert *a;
	size_t n = log_asserts(v->log, v->past, e, &a);

	if (e && is_all_there_is(c)) {
		fact_set_number(c, FACT_text_line, (double)e->line);
		fact_set_text(c, FACT_text_file, e->file);
	}
	observe(c, v, TEXT_OBSERVER);
	tell_error(c, e, a, n);
	case_observer(c, before);
}

/* Where two texts have a word, the first one counts. */
static void add_hits(struct casefile *c, const struct text_view *v)
{
	const struct text_hit *of_text, *old = c->hits;
	size_t n = log_hits(v->log, v->past, c->pool, &of_text), n_old = c->n_hits, i = 0, k = 0;
	struct text_hit *all = pool_alloc(c->pool, (n + n_old + 1) * sizeof(*all));

	c->hits = all;
	c->n_hits = 0;
	while (i < n_old || k < n) {
		int order = i == n_old ? 1 : k == n ? -1 : strcmp(old[i].words, of_text[k].words);

		all[c->n_hits++] = order <= 0 ? old[i] : of_text[k];
		i += order <= 0;
		k += order >= 0;
	}
}

void text_observe_event(struct casefile *c, const struct text_log *l, const struct text_event *e)
{
	observe_given(c, &(struct text_view){.log = l, .event = e});
}

void text_observe(struct casefile *c, const struct text_view *v)
{
	add_hits(c, v);
	observe_given(c, v);
}

void words_observe(struct casefile *c, const struct text_view *v)
{
	add_hits(c, v);
	observe(c, v, EXCEPTION_OBSERVER);
}

void text_observe_failure(struct casefile *c, const struct text_view *v, const struct text_hit *told)
{
	const struct text_event *e = v->event;

	text_observe(c, v);
	c->n_like = likeness_rank(log_words(v->log), c->like, LIKENESS_MAX, c->pool);
	c->like_place = told || (e && !e->cut && !e->warning) ? LIKE_FIRST
			: e && e->cut			      ? LIKE_BEHIND_UNKNOWN
							      : LIKE_BEHIND_RULES;
	if (told)
		case_evidence(c, TEXT_OBSERVER, pool_printf(c->pool, "%s line %llu: told, not shown: %.*s", told->file,
					  (unsigned long long)told->line, TEXT_SHOWN_MAX, told->text));
}
