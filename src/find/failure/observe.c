/* SPDX-License-Identifier: Apache-2.0
 * Everything that can be said about one incident: the error, the exception, the process.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "find/failure/observe.h"
#include "find/fault/recall_suspects.h"
#include "read/recording/damage.h"
#include "case/message.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "formats/xid.h"
#include "formats/demangle.h"
#include "find/failure/asserting.h"
#include "find/failure/place.h"
#include "find/failure/printed.h"
#include "find/failure/suspects.h"
#include "read/recording/trace.h"
#include "find/failure/triton_names.h"
#include "find/memory/turns.h"

#define TEXT_MAX (32 << 10)

static const char *source_id(uint32_t source)
{
	switch (source) {
#define X(number, name, id, text) case number: return id;
	CW_SOURCES(X)
#undef X
	default: return NULL;
	}
}

/* The driver's log without its repetitions and its advice to programmers. */
static char *tidy_log(const char *text, struct pool *pool)
{
	static const char advice[] = ", to get more information";
	struct buf out;
	char *copy, *line, *rest = pool_strdup(pool, text), *cut;

	buf_init(&out, TEXT_MAX);
	buf_adds(&out, "");
	while ((line = strsep(&rest, "\n")) != NULL) {
		cut = strstr(line, advice);
		if (cut)
			*cut = '\0';
		if (!line[0] || str_starts(line, "Returning ") || (out.data && strstr(out.data, line)))
			continue;
		buf_adds(&out, out.len ? "; " : "");
		buf_adds(&out, line);
	}
	copy = out.len ? pool_copy(pool, out.data, out.len) : NULL;
	buf_release(&out);
	return copy;
}

/* All messages, each text once. */
static void fill_text(struct casefile *f, const struct incident *i, const struct trace *t)
{
	struct buf all;

	buf_init(&all, TEXT_MAX);
	buf_adds(&all, "");
	for (size_t k = 0; k < i->n; k++) {
		const char *text = printed_message(i->failure[k], t, f->pool);

		if (!text[0] || (all.data && strstr(all.data, text)))
			continue;
		if (all.len)
			buf_adds(&all, "\n");
		buf_adds(&all, text);
		if (i->failure[k]->source == CW_SRC_DRIVER && !fact_known(f, FACT_error_log))
			fact_set_text(f, FACT_error_log, tidy_log(text, f->pool));
	}
	fact_set_text(f, FACT_error_text, all.data ? all.data : "");
	buf_release(&all);
}

static void observe_error(struct casefile *f, const struct incident *i)
{
	const struct cw_failure *l = i->lead;
	uint32_t code = i->code ? i->code : message_code(fact_text(f, FACT_error_text));

	fact_set_number(f, FACT_error_code, code);
	if (code) {
		fact_set_text(f, FACT_error_string, cuda_error_text(code));
		fact_set_text(f, FACT_error_name, cuda_error_name(code)[0] ? cuda_error_name(code) : NULL);
	}
	fact_set_flag(f, FACT_error_sticky, code != CODE_DEINITIALIZED && cuda_error_sticky(code));
	fact_set_flag(f, FACT_error_async, code != CODE_DEINITIALIZED && cuda_error_sticky(code));
	fact_set_text(f, FACT_error_source, source_id(l->source));
	if (l->api && api_name(l->api)[0])
		fact_set_text(f, FACT_error_api, api_name(l->api));
	else if (l->source == CW_SRC_RUNTIME && l->what[0])
		fact_set_text(f, FACT_error_api, l->what);
	fact_set_flag(f, FACT_error_raised, i->raised);
	fact_set_number(f, FACT_error_count, l->count ? l->count : 1);
}

static char *first_line(const char *text, struct pool *pool)
{
	return pool_copy(pool, text, strcspn(text, "\n"));
}

/* The exception is of another error than the call that failed. */
static void compare_codes(struct casefile *f, const struct incident *i, const struct trace *t)
{
	const struct cw_failure *python = incident_from(i, CW_SRC_PYTHON);
	uint32_t told = python ? message_code(trace_failure_text(t, python)) : 0;

	if (cuda_errors_contradict(i->code, told))
		case_contradiction(f, pool_printf(f->pool, "a call returned %u (%s), but the exception says %s",
						  i->code, cuda_error_name(i->code), cuda_error_name(told)));
}

static void observe_exception(struct casefile *f, const struct incident *i)
{
	const struct cw_failure *python = incident_from(i, CW_SRC_PYTHON);
	const struct cw_failure *check = incident_from(i, CW_SRC_TORCH_CHECK);

	if (python) {
		fact_set_text(f, FACT_python_type, python->what);
		fact_set_text(f, FACT_python_message, python->text);
	}
	if (check && check->what[0])
		fact_set_text(f, FACT_check_function, check->what);
	if (check || python)
		fact_set_text(f, FACT_check_message, first_line(check ? check->text : python->text, f->pool));
}

static void observe_collective(struct casefile *f, const struct incident *i)
{
	const struct cw_failure *odd = incident_from(i, CW_SRC_RANKS);

	uint64_t blame = odd && odd->n_args ? odd->arg[0] : CW_BLAME_ODD;

	fact_set_flag(f, FACT_collective_differs, odd != NULL);
	if (!odd)
		return;
	fact_set_flag(f, FACT_collective_either, blame == CW_BLAME_EITHER);
	fact_set_flag(f, FACT_collective_waits, blame == CW_BLAME_WAITS);
	fact_set_flag(f, FACT_collective_ended, strstr(odd->text, " ended") != NULL);
	fact_set_text(f, FACT_collective_call, odd->what);
	fact_set_text(f, FACT_collective_mismatch, odd->text);
}

/* The autograd node's C++ type, as the compiler writes it: "N5torch8autograd9generated12MulBackward0E". */
static void fill_node(struct casefile *f, const struct trace *t, uint32_t node_name)
{
	const char *symbol = trace_string(t, node_name), *name, *s;
	char *plain;

	if (!symbol[0])
		return;
	plain = demangle(str_starts(symbol, "_Z") ? symbol : pool_printf(f->pool, "_Z%s", symbol));
	name = plain ? plain : symbol;
	while ((s = strstr(name, "::")) != NULL)
		name = s + 2;
	fact_set_text(f, FACT_torch_node, name);
	free(plain);
}

/* Kernels that serve many operators: their name does not say which. */
static bool is_general_kernel(const char *name)
{
	static const char *const general[] = {"elementwise_kernel", "reduce_kernel", "index_elementwise",
					      NULL};

	for (size_t i = 0; general[i]; i++)
		if (strstr(name, general[i]))
			return true;
	return false;
}

static void fill_op(struct casefile *f, const struct incident *i, const struct trace *t)
{
	const char *op = NULL, *name = strstr(fact_text(f, FACT_func_short), "at::native::"), *s;

	for (size_t k = 0; k < i->n && !op; k++)
		op = stack_torch_op(t, i->failure[k]->stack);
	if (!op && name && !is_general_kernel(name)) {
		op = name + strlen("at::native::");
		while ((s = strstr(op, "::")) != NULL)
			op = s + 2;
	}
	if (op && (fact_true(f, FACT_kernel_is_torch) || !fact_known(f, FACT_kernel_is_torch)))
		fact_set_text(f, FACT_torch_op, op);
}

static char *place_shown(struct casefile *f, const struct place *p, const char *cwd)
{
	return pool_printf(f->pool, "%s:%u", file_shown(p->file, cwd), p->line);
}

static void fill_places(struct casefile *f, const struct incident *i, const struct trace *t,
			const struct scene *s)
{
	const char *cwd = trace_header(t)->cwd;

	if (s->where.file) {
		fact_set_text(f, FACT_where_line, place_shown(f, &s->where, cwd));
		fact_set_text(f, FACT_where_source, place_source(&s->where, trace_sources(t), f->pool));
	}
	if (s->noticed.file)
		fact_set_text(f, FACT_where_noticed, place_shown(f, &s->noticed, cwd));
	fact_set_flag(f, FACT_capture_active, i->lead->capturing);
	if (s->capture.file)
		fact_set_text(f, FACT_capture_line, place_shown(f, &s->capture, cwd));
}

/* The current device; if not known, any device when all are the same model. */
static const struct cw_device *device_of(const struct incident *i, const struct cw_header *h)
{
	uint32_t n = h->device_count < CW_MAX_DEVICES ? h->device_count : 0;

	for (size_t k = 0; k < i->n; k++) {
		int32_t d = i->failure[k]->device;

		if (d >= 0 && d < CW_MAX_DEVICES && h->device[d].name[0])
			return &h->device[d];
	}
	for (uint32_t d = 1; d < n; d++)
		if (strcmp(h->device[d].name, h->device[0].name))
			return NULL;
	return n && h->device[0].name[0] ? &h->device[0] : NULL;
}

/* What a recording can know: anything it does not say is unknown. */
static void observe_groups(struct casefile *c, const struct incident *i)
{
	static const enum group_id groups[] = {
		GROUP_error,   GROUP_python, GROUP_check,   GROUP_torch,      GROUP_launch, GROUP_limit,
		GROUP_func,    GROUP_call,   GROUP_kernel,  GROUP_shared,     GROUP_device, GROUP_ordinal,
		GROUP_visible, GROUP_driver, GROUP_oom,	    GROUP_memory,     GROUP_frag,   GROUP_graph,
		GROUP_grow,    GROUP_others, GROUP_context, GROUP_library,    GROUP_pinned, GROUP_ram,
		GROUP_masked,  GROUP_load,   GROUP_process, GROUP_capture,    GROUP_where,  GROUP_pool,
		GROUP_shape,   GROUP_hang,   GROUP_turn,    GROUP_collective, GROUP_guard,  GROUP_autograd,
	};

	for (size_t k = 0; k < sizeof(groups) / sizeof(groups[0]); k++)
		case_observe(c, groups[k]);
	if (i->code && xid_matters(i->code))
		case_observe(c, GROUP_xid);
}

static void facts_of_incident(struct casefile *f, const struct incident *i, struct trace *t, const struct scene *s)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_device *d = device_of(i, h);

	fact_set_flag(f, FACT_process_forked, h->forked);
	fact_set_flag(f, FACT_process_sim, h->sim);
	fact_set_number(f, FACT_process_pid, h->pid);
	fact_set_flag(f, FACT_torch_loaded, h->torch_path[0] != '\0');
	fact_set_text(f, FACT_torch_alloc_conf,
		      strcmp(trace_header(t)->alloc_conf, CW_NOT_SET) ? trace_header(t)->alloc_conf : "");
	fill_hang(f, i, t);
	fill_text(f, i, t);
	observe_error(f, i);
	observe_exception(f, i);
	compare_codes(f, i, t);
	observe_collective(f, i);
	fill_device(f, i, t, d);
	fill_versions(f, t, d);
	fill_launch(f, i, t, d);
	fill_memory(f, i, d);
	facts_from_message(f, fact_text(f, FACT_error_text));
	case_memory_parts(f);
	fill_node(f, t, s->node_name);
	fill_op(f, i, t);
	fill_places(f, i, t, s);
	fill_xid(f, i, t);
}

#define STACK_MAX 128

struct line line_of_place(struct casefile *c, const struct trace *t, const struct place *p)
{
	struct line l = {0};

	if (!p->file)
		return l;
	l.file = pool_strdup(c->pool, p->file);
	l.shown = file_shown(l.file, trace_header(t)->cwd);
	l.function = case_keep(c, p->function);
	l.number = p->line;
	l.library = p->library;
	l.source = place_source(p, trace_sources(t), c->pool);
	return l;
}

static size_t lines_of_stack(struct casefile *c, const struct trace *t, uint32_t off, struct line **lines)
{
	const struct cw_stack *s = off ? trace_stack(t, off) : NULL;
	size_t n = 0;

	if (!s)
		return 0;
	*lines = pool_alloc(c->pool, STACK_MAX * sizeof(**lines));
	for (uint32_t i = 0; i < s->n && n < STACK_MAX; i++) {
		struct line *l = &(*lines)[n++];

		l->file = pool_strdup(c->pool, trace_string(t, s->frame[i].file));
		l->function = case_keep(c, trace_string(t, s->frame[i].function));
		l->number = s->frame[i].line;
		l->typed = stack_typed(t, s, i) != NULL;
	}
	return n;
}

struct blamed line_with_callers(struct casefile *c, const struct trace *t, const struct place *p)
{
	struct blamed b = {.line = line_of_place(c, t, p)};
	const struct line *caller;

	b.n_stack = lines_of_stack(c, t, p->stack, &b.stack);
	caller = line_caller(&b.line, b.stack, b.n_stack, 0);
	if (caller)
		b.caller = line_of_place(c, t, &(struct place){.file = caller->file, .line = caller->number,
					.text = caller->typed ? command_text(trace_header(t)->cmdline) : NULL});
	return b;
}

static void observe_scene(struct casefile *c, const struct trace *t, const struct scene *s)
{
	uint32_t off = trace_header(t)->frames_off_because;
	struct blamed where = line_with_callers(c, t, &s->where);

	c->line[LINE_where] = where.line;
	c->line[LINE_caller] = where.caller;
	c->stack = where.stack;
	c->n_stack = where.n_stack;
	c->line[LINE_noticed] = line_of_place(c, t, &s->noticed);
	c->line[LINE_forward] = line_of_place(c, t, &s->forward);
	c->line[LINE_backward] = line_of_place(c, t, &s->backward);
	c->line[LINE_capture] = line_of_place(c, t, &s->capture);
	if (!c->line[LINE_where].file && off)
		c->no_lines = reason_text(off);
}

static void observe_refused_kernel(struct casefile *c, const struct incident *i)
{
	const struct cw_failure *l = NULL;

	for (size_t k = 0; k < i->n && !l; k++)
		if (i->failure[k]->is_launch)
			l = i->failure[k];
	/* a launch that returns an error of earlier work did not cause it */
	if (i->sticky)
		return;
	fact_set_text(c, FACT_kernel_name, fact_text_or_null(c, FACT_func_name));
	fact_set_text(c, FACT_kernel_short, fact_text_or_null(c, FACT_func_short));
	if (!l)
		return;
	fact_set_triple(c, FACT_kernel_grid, l->grid);
	fact_set_triple(c, FACT_kernel_block, l->block);
	fact_set_number(c, FACT_kernel_shared, l->shared);
	fact_set_number(c, FACT_kernel_stream, (double)l->stream);
}

#define SUSPECTS_KEPT 8

void recording_observe_suspects(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s)
{
	const char *before = case_observer(c, RECORDING_OBSERVER);
	struct suspects *found = pool_alloc(c->pool, sizeof(*found));
	struct asserting asserting;
	struct place asserts;

	asserting_find(&asserting, i, t, c->pool);
	suspects_find(found, t, i->lead, &asserting, c->pool);
	fact_set_number(c, FACT_suspects_launches, (double)found->launches);
	fact_set_number(c, FACT_suspects_lines, (double)found->n);
	c->n_suspects = found->n < SUSPECTS_KEPT ? found->n : SUSPECTS_KEPT;
	c->suspects = pool_alloc(c->pool, (c->n_suspects + 1) * sizeof(*c->suspects));
	for (size_t k = 0; k < c->n_suspects; k++) {
		const struct suspect *x = &found->line[k];

		c->suspects[k].line = line_of_place(c, t, &x->place);
		c->suspects[k].kernel = case_keep(c, kernel_short_name(trace_function_name(t, x->func), c->pool));
		c->suspects[k].launches = x->launches;
	}
	if (found->n == 1 && found->line[0].place.file)
		s->where = found->line[0].place;
	/* of all suspects perhaps one alone is known to assert */
	if ((i->code == CODE_ASSERT || asserting.line) &&
	    place_of_stack(t, assert_facts_of_suspects(c, t, i->lead, &asserting), &asserts))
		s->where = asserts;
	if ((i->code == CODE_ASSERT || asserting.line) &&
	    place_of_stack(t, recall_suspects(c, t, i->lead, &asserting), &asserts))
		s->where = asserts;
	if (found->cleared)
		case_evidence(c, "driver",
			      pool_printf(c->pool, "%zu of %zu launches since the last successful synchronization fit what was printed",
					  found->launches, found->launches + found->cleared));
	case_observer(c, before);
}

static void tell_wait(struct casefile *c, const struct waiting *w)
{
	const char *how = w->polls ? "polled with" : "waited in";
	const char *line = w->line.file ? pool_printf(c->pool, " at %s:%u", w->line.shown, w->line.number) : "";

	case_evidence(c, "wait", pool_printf(c->pool, "thread %u %s %s for %llu s%s", w->tid, how, w->api,
				  (unsigned long long)w->seconds, line));
}

static void observe_waiting(struct casefile *c, const struct trace *t)
{
	const struct cw_hang *h = &trace_header(t)->hang;

	c->waiting = pool_alloc(c->pool, (h->n + 1) * sizeof(*c->waiting));
	for (uint32_t i = 0; i < h->n; i++) {
		struct waiting *w = &c->waiting[c->n_waiting++];
		struct place p = {0};

		*w = (struct waiting){.tid = h->thread[i].tid, .api = api_name(h->thread[i].api),
				      .seconds = h->thread[i].waited_ns / 1000000000u,
				      .polls = h->thread[i].polls != 0};
		if (place_of_stack(t, h->thread[i].stack, &p))
			w->line = line_of_place(c, t, &p);
		w->n_stack = lines_of_stack(c, t, h->thread[i].stack, &w->stack);
		tell_wait(c, w);
	}
	if (!c->line[LINE_noticed].file && c->n_waiting)
		c->line[LINE_noticed] = c->waiting[0].line;
}

static char *failure_text(struct casefile *c, const struct cw_failure *f, const struct trace *t)
{
	const char *function = f->api ? api_name(f->api) : f->what;

	switch (f->source) {
	case CW_SRC_DRIVER:
	case CW_SRC_RUNTIME:
		return pool_printf(c->pool, "%s returned %u (%s)%s%s", function[0] ? function : "a call", f->code,
				   cuda_error_name(f->code), f->text[0] ? ": " : "", f->text);
	case CW_SRC_TORCH_CUDA:
		return pool_printf(c->pool, "PyTorch saw error %u (%s) in %s", f->code, cuda_error_name(f->code),
				   f->what[0] ? f->what : "a CUDA call");
	case CW_SRC_TORCH_OOM:
		return pool_printf(c->pool, "PyTorch's allocator failed to allocate %llu bytes",
				   (unsigned long long)f->request_bytes);
	case CW_SRC_PYTHON:
		return pool_printf(c->pool, "%s: %s", f->what[0] ? f->what : "exception",
				   first_line(printed_message(f, t, c->pool), c->pool));
	case CW_SRC_FORK:
		return pool_strdup(c->pool, "PyTorch detected CUDA use in a forked child");
	default:
		return pool_copy(c->pool, f->text, strcspn(f->text, "\n"));
	}
}

static void tell_failures(struct casefile *c, const struct incident *i, const struct trace *t)
{
	for (size_t k = 0; k < i->n; k++) {
		const char *source = source_id(i->failure[k]->source);

		if (i->failure[k]->source != CW_SRC_WAIT)	/* observe_waiting reports that for all threads */
			case_evidence(c, source ? source : RECORDING_OBSERVER, failure_text(c, i->failure[k], t));
	}
}

static void observe_turns(struct casefile *c, const struct incident *i, const struct trace *t)
{
	struct turn turns[CW_LOOP_TURNS];
	const struct turn *named;
	size_t n = 0;

	for (size_t k = 0; k < i->n && !n; k++)
		n = turns_of_failure(t, i->failure[k], turns);
	named = turn_to_name(turns, n);
	if (!named)
		return;
	fact_set_number(c, FACT_turn_number, named->turn);
	fact_set_flag(c, FACT_turn_exact, named->exact);
	fact_set_text(c, FACT_turn_loop,
		      pool_printf(c->pool, "%s:%u", file_shown(named->loop.file, trace_header(t)->cwd), named->loop.line));
	fact_set_flag(c, FACT_turn_library, named->loop.library);
	fact_set_text(c, FACT_turn_words, turns_in_words(t, turns, n, c->pool));
	case_evidence(c, RECORDING_OBSERVER, pool_printf(c->pool, "noticed in %s", fact_text(c, FACT_turn_words)));
}

static void tell_xid(struct casefile *c, const struct incident *i, const struct trace *t)
{
	int about = -1;
	const struct xid *x = incident_xid(i, t, &about);

	if (x)
		case_evidence(c, "kernel-log", pool_strdup(c->pool, x->text));
	else if (!i->code || trace_header(t)->sim)
		return;
	else if (i->xids && i->xids->readable && i->xids->lost)
		case_evidence(c, "kernel-log", "parts of the kernel log were overwritten before they could be read");
	else if (i->xids && !i->xids->readable)
		case_evidence(c, "kernel-log", "the kernel log could not be read: a hardware error would not be seen");
}

/* Whose memory it is has been observed by now, if there is a dump. */
static void observe_param_name(struct casefile *c, const struct trace *t)
{
	if (fact_known(c, FACT_address_param) && fact_known(c, FACT_kernel_name))
		fact_set_text(c, FACT_address_param_name,
			      triton_param_name(t, fact_text(c, FACT_kernel_name),
						(unsigned)fact_number(c, FACT_address_param, 0), c->pool));
}

void recording_observe(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s)
{
	const char *before = case_observer(c, RECORDING_OBSERVER);

	observe_groups(c, i);
	observe_guard(c, i, t, s);
	observe_autograd(c, i, t, s);
	place_skip_decorators(&s->where, trace_sources(t), c->pool);
	facts_of_incident(c, i, t, s);
	observe_scene(c, t, s);
	observe_tensors(c, i, t, s);
	if (!case_observed(c, GROUP_fault))
		observe_refused_kernel(c, i);
	observe_printed(c, i, t);
	observe_param_name(c, t);
	observe_ledger(c, i, t);
	observe_holders(c, t);
	if (i->hang)
		observe_waiting(c, t);
	tell_failures(c, i, t);
	observe_turns(c, i, t);
	observe_numbers(c, t);
	tell_xid(c, i, t);
	fact_set_text(c, FACT_process_damaged, damage_words(t, c->pool));
	case_observer(c, before);
}
