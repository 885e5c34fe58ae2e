/* SPDX-License-Identifier: Apache-2.0
 * Facts about a device-side assert (see fact_assert.h).
 */
#include "facts/fact_assert.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "dump/culprit.h"
#include "facts/incident.h"
#include "facts/place.h"
#include "facts/signature.h"
#include "facts/suspects.h"
#include "trace/trace.h"

static const struct { const char *what, *kernel, *condition; } abouts[] = {
#define ABOUT(what, kernel, condition) { what, kernel, condition },
#include "kb/asserts.def"
};

static const struct { const char *what, *kernel; } kernels[] = {
#define KERNEL(what, kernel) { what, kernel },
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number; const char *name; int index; } bounds[] = {
#define BOUND(kernel, number, name, index) { kernel, number, name, index },
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number; } messages[] = {
#define MESSAGE(kernel, number) { kernel, number },
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number; } ignored[] = {
#define IGNORED(kernel, number) { kernel, number },
#include "kb/asserts.def"
};

static const char *const positions[] = {
#define POSITION(line) line,
#include "kb/asserts.def"
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_like(const char *text, const char *pattern)
{
	return fnmatch(pattern, text, 0) == 0;
}

/* "" when the kernel's assertions can be about anything. Kernels that serve many operators have the operator among
 * their template arguments, which only the full name has. */
static const char *about_kernel(const char *kernel, const char *full)
{
	for (size_t i = 0; i < COUNT(kernels); i++)
		if (is_like(kernel, kernels[i].kernel) || is_like(full, kernels[i].kernel))
			return kernels[i].what;
	return "";
}

static const char *about_condition(const char *kernel, const char *condition)
{
	for (size_t i = 0; i < COUNT(abouts); i++)
		if (is_like(kernel, abouts[i].kernel) && is_like(condition, abouts[i].condition))
			return abouts[i].what;
	return "";
}

/* ---- the size that was exceeded --------------------------------------------------------------------- */

/* "index out of bounds: 0 <= tmp4 < 10": generated code says the number itself. */
static bool bound_in_text(const char *condition, double *bound)
{
	const char *less = strrchr(condition, '<');
	char *end;
	long long n;

	if (!less || !strstr(condition, "index out of bounds: "))
		return false;
	n = strtoll(less + 1, &end, 10);
	if (end == less + 1 || *end || n <= 0)
		return false;
	*bound = (double)n;
	return true;
}

static void set_dtype(struct facts *f, const char *name, int index)
{
	struct signature_param p;

	if (index >= 0 && signature_param(name, (unsigned)index, &p) && p.points_to_dtype)
		fact_set_text(f, FACT_assert_dtype, p.points_to_dtype);
}

static void set_bound(struct facts *f, const struct culprit *c, const char *kernel, const char *condition)
{
	double bound;
	int64_t value;

	if (bound_in_text(condition, &bound))
		fact_set_number(f, FACT_assert_bound, bound);
	for (size_t i = 0; i < COUNT(bounds) && c->kernel_text; i++) {
		/* the condition must speak of that parameter */
		if (!is_like(kernel, bounds[i].kernel) || !strstr(condition, bounds[i].name))
			continue;
		if (signature_integer(c->kernel_text, bounds[i].number, c->params.data, c->params.len, &value) &&
		    value > 0 && value < (int64_t)1 << 48)
			fact_set_number(f, FACT_assert_bound, (double)value);
		set_dtype(f, c->kernel_text, bounds[i].index);
	}
}

static void set_ignored(struct facts *f, const struct culprit *c, const char *kernel)
{
	int64_t value;

	for (size_t i = 0; i < COUNT(ignored) && c->kernel_text; i++)
		if (is_like(kernel, ignored[i].kernel) &&
		    signature_integer(c->kernel_text, ignored[i].number, c->params.data, c->params.len, &value) &&
		    value > -((int64_t)1 << 48) && value < (int64_t)1 << 48)
			fact_set_number(f, FACT_assert_ignored, (double)value);
}

/* Some kernels are given their message as a parameter. */
static const char *message_in_params(struct facts *f, const struct culprit *c, const char *kernel)
{
	struct signature_param p;
	size_t n;

	for (size_t i = 0; i < COUNT(messages) && c->kernel_text && c->params.data; i++) {
		if (!is_like(kernel, messages[i].kernel) || !messages[i].number ||
		    !signature_param(c->kernel_text, messages[i].number - 1, &p))
			continue;
		/* the text follows the parameter before it, without a gap: it is made of bytes */
		if (p.offset + p.size >= c->params.len)
			continue;
		n = strnlen((const char *)c->params.data + p.offset + p.size, c->params.len - p.offset - p.size);
		if (n && p.offset + p.size + n < c->params.len)
			return pool_copy(f->pool, (const char *)c->params.data + p.offset + p.size, n);
	}
	return NULL;
}

/* Of several that it can be, what all of them are about. */
static const char *about_choices(struct facts *f, const struct assertion *a, const char *kernel)
{
	const char *about = about_condition(kernel, a->one_of[0]), *text = "";

	for (size_t i = 0; i < a->n_one_of; i++) {
		if (strcmp(about, about_condition(kernel, a->one_of[i])))
			about = "";
		text = pool_printf(f->pool, "%s%s`%s`", text, text[0] ? " or " : "", a->one_of[i]);
	}
	fact_set_text(f, FACT_assert_one_of, text);
	return about;
}

void assert_facts_of_dump(struct facts *f, const struct culprit *c)
{
	const char *kernel = c->kernel_text ? kernel_short_name(c->kernel_text, f->pool) : "";
	const char *condition = c->assertion.condition, *about;

	if (c->fault != FAULT_ASSERT)
		return;
	if (!condition)
		condition = message_in_params(f, c, kernel);
	fact_set_text(f, FACT_assert_kernel, kernel);
	fact_set_text(f, FACT_assert_condition, condition);
	fact_set_text(f, FACT_assert_file, c->assertion.file);
	fact_set_text(f, FACT_assert_function, c->assertion.function);
	if (c->assertion.line)
		fact_set_number(f, FACT_assert_line, c->assertion.line);
	if (condition)
		about = about_condition(kernel, condition);
	else if (c->assertion.n_one_of)
		about = about_choices(f, &c->assertion, kernel);
	else
		about = about_kernel(kernel, c->kernel_text ? c->kernel_text : "");
	fact_set_text(f, FACT_assert_about, about);
	if (condition)
		set_bound(f, c, kernel, condition);
	set_ignored(f, c, kernel);
}

/* ---- a log ---------------------------------------------------------------------------------------- */

static bool names_position(const char *line)
{
	for (size_t i = 0; i < COUNT(positions); i++)
		if (fnmatch(positions[i], line, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

/* Embeddings are called by many names; `stack` has a frame a line, innermost last. */
static const char *op_of_stack(const char *stack)
{
	static const char *const names[] = {"embedding", "embed_tokens", "word_emb", "wte(", "embeddings(", "embed("};

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcasestr(stack, names[i]))
			return "embedding";
	return "";
}

void assert_facts_of_text(struct facts *f, const char *function, const char *condition, const char *file, uint32_t line,
			  const char *stack)
{
	double bound;

	fact_set_text(f, FACT_assert_kernel, function);
	fact_set_text(f, FACT_assert_function, function);
	fact_set_text(f, FACT_assert_condition, condition);
	fact_set_text(f, FACT_assert_file, file);
	if (line)
		fact_set_number(f, FACT_assert_line, line);
	fact_set_text(f, FACT_assert_about, about_condition(function, condition));
	if (bound_in_text(condition, &bound))
		fact_set_number(f, FACT_assert_bound, bound);
	fact_set_text(f, FACT_assert_op, op_of_stack(stack));
	fact_set_flag(f, FACT_assert_position, names_position(stack));
}

/* ---- the launch ------------------------------------------------------------------------------------- */

static void facts_of_stack(struct facts *f, const struct trace *t, uint32_t stack)
{
	const char *op = stack ? stack_torch_op(t, stack) : NULL, *line;
	struct place p;

	if (!stack)
		return;
	fact_set_text(f, FACT_assert_op, op ? op : "");
	if (place_of_caller(t, stack, &p))
		fact_set_text(f, FACT_assert_caller, place_source(&p, trace_header(t)->cwd, f->pool));
	line = fact_text(f, FACT_assert_caller);
	fact_set_flag(f, FACT_assert_position, names_position(line));
}

struct search {
	struct facts *facts;
	struct trace *trace;
	const char *kernel, *about, *op;	/* NULL = none was found yet */
	uint32_t stack;			/* of its launch; 0 when there were several lines */
	struct place place;
	bool differ;			/* they check different things */
};

static bool same_line(const struct search *q, uint32_t stack)
{
	struct place p;

	return stack == q->stack || (place_of_stack(q->trace, stack, &p) && q->place.file &&
				     p.line == q->place.line && !strcmp(p.file, q->place.file));
}

static void consider(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;
	const char *full = l->func ? trace_function_name(q->trace, l->func) : "";
	const char *name = kernel_short_name(full, q->facts->pool);
	const char *about = about_kernel(name, full), *op = stack_torch_op(q->trace, l->stack);

	if (!about[0])
		return;
	if (!q->kernel) {
		q->kernel = name;
		q->about = about;
		q->op = op;
		q->stack = l->stack;
		place_of_stack(q->trace, l->stack, &q->place);
		return;
	}
	q->differ |= strcmp(q->about, about) != 0;
	if (!op || !q->op || strcmp(op, q->op))
		q->op = NULL;
	if (q->stack && !same_line(q, l->stack))
		q->stack = 0;
}

uint32_t assert_facts_of_suspects(struct facts *f, struct trace *t, const struct cw_failure *noticed)
{
	struct search q = { .facts = f, .trace = t };

	suspects_each(t, noticed, consider, &q);
	if (!q.kernel || q.differ)
		return 0;
	fact_set_text(f, FACT_assert_kernel, q.kernel);
	fact_set_text(f, FACT_assert_about, q.about);
	if (q.op)
		fact_set_text(f, FACT_assert_op, q.op);
	facts_of_stack(f, t, q.stack);
	return q.stack;
}

void assert_facts_of_lines(struct facts *f, const struct trace *t, const struct place *line, size_t n)
{
	const char *op = n && line[0].stack ? stack_torch_op(t, line[0].stack) : NULL, *other;

	if (n == 1)
		facts_of_stack(f, t, line[0].stack);
	for (size_t i = 1; i < n && op; i++) {
		other = line[i].stack ? stack_torch_op(t, line[i].stack) : NULL;
		if (!other || strcmp(op, other))
			op = NULL;
	}
	if (n > 1 && op)
		fact_set_text(f, FACT_assert_op, op);
}

void facts_without_assert(struct facts *f)
{
	if (!fact_known(f, FACT_assert_about))
		fact_set_text(f, FACT_assert_about, "");
	if (!fact_known(f, FACT_assert_op))
		fact_set_text(f, FACT_assert_op, "");
	if (!fact_known(f, FACT_assert_position))
		fact_set_flag(f, FACT_assert_position, false);
}
