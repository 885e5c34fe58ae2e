/* SPDX-License-Identifier: Apache-2.0
 * Everything that can be said about one incident: the error, the exception, the process.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "case/assert.h"
#include "input/recording/observe.h"
#include "case/message.h"
#include "compat/cuda_errors.h"
#include "formats/demangle.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

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

/* All that was said, each text once. */
static void fill_text(struct casefile *f, const struct incident *i)
{
	struct buf all;

	buf_init(&all, TEXT_MAX);
	buf_adds(&all, "");
	for (size_t k = 0; k < i->n; k++) {
		const char *text = i->failure[k]->text;

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

static void fill_error(struct casefile *f, const struct incident *i)
{
	const struct cw_failure *l = i->lead;
	uint32_t code = i->code ? i->code : message_code(fact_text(f, FACT_error_text));

	fact_set_number(f, FACT_error_code, code);
	if (code) {
		fact_set_text(f, FACT_error_string, cuda_error_text(code));
		fact_set_text(f, FACT_error_name, cuda_error_name(code)[0] ? cuda_error_name(code) : NULL);
	}
	fact_set_flag(f, FACT_error_sticky, code != 4 && cuda_error_sticky(code));
	fact_set_flag(f, FACT_error_async, code != 4 && cuda_error_sticky(code));
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

static void fill_exception(struct casefile *f, const struct incident *i)
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

/* Kernels that serve many operators: their name does not tell which. */
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

static char *shown(struct casefile *f, const struct place *p, const char *cwd)
{
	return pool_printf(f->pool, "%s:%u", file_shown(p->file, cwd), p->line);
}

static void fill_places(struct casefile *f, const struct incident *i, const struct trace *t,
			const struct scene *s)
{
	const char *cwd = trace_header(t)->cwd;

	if (s->where.file) {
		fact_set_text(f, FACT_where_line, shown(f, &s->where, cwd));
		fact_set_text(f, FACT_where_source, place_source(&s->where, cwd, f->pool));
	}
	fact_set_flag(f, FACT_capture_active, i->lead->capturing);
	if (s->capture.file)
		fact_set_text(f, FACT_capture_line, shown(f, &s->capture, cwd));
}

/* The device that was current; where that is not known, any when all are of one kind. */
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

void facts_of_incident(struct casefile *f, const struct incident *i, struct trace *t,
		       const struct scene *s)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_device *d = device_of(i, h);

	if (!fact_known(f, FACT_fault_kind)) {
		fact_set_text(f, FACT_fault_kind, "");
		fact_set_text(f, FACT_address_in, "");
	}
	facts_without_assert(f);
	fact_set_flag(f, FACT_snapshot_is, false);
	fact_set_flag(f, FACT_process_forked, h->forked);
	fact_set_flag(f, FACT_process_sim, h->sim);
	fact_set_flag(f, FACT_torch_loaded, h->torch_path[0] != '\0');
	fact_set_text(f, FACT_torch_alloc_conf,
		      strcmp(trace_header(t)->alloc_conf, CW_NOT_SET) ? trace_header(t)->alloc_conf : "");
	fill_hang(f, i, t);
	fill_text(f, i);
	fill_error(f, i);
	fill_exception(f, i);
	fill_device(f, i, t, d);
	fill_launch(f, i, t, d);
	fill_memory(f, i, d);
	facts_from_message(f, fact_text(f, FACT_error_text));
	case_memory_parts(f);
	fill_node(f, t, s->node_name);
	fill_op(f, i, t);
	fill_places(f, i, t, s);
	fill_xid(f, i, t);
}
