/* SPDX-License-Identifier: Apache-2.0
 * What a core dump tells of a device-side assert: the condition, and the size that was exceeded.
 */
#include <fnmatch.h>
#include <string.h>

#include "case/assert.h"
#include "case/signature.h"
#include "input/dump/culprit.h"
#include "input/dump/observe.h"

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

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_like(const char *text, const char *pattern)
{
	return fnmatch(pattern, text, 0) == 0;
}

static void set_dtype(struct casefile *f, const char *name, int index)
{
	struct signature_param p;

	if (index >= 0 && signature_param(name, (unsigned)index, &p) && p.points_to_dtype)
		fact_set_text(f, FACT_assert_dtype, p.points_to_dtype);
}

static void set_bound(struct casefile *f, const struct culprit *c, const char *kernel, const char *condition)
{
	double bound;
	int64_t value;

	if (assert_bound_in_text(condition, &bound))
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

static void set_ignored(struct casefile *f, const struct culprit *c, const char *kernel)
{
	int64_t value;

	for (size_t i = 0; i < COUNT(ignored) && c->kernel_text; i++)
		if (is_like(kernel, ignored[i].kernel) &&
		    signature_integer(c->kernel_text, ignored[i].number, c->params.data, c->params.len, &value) &&
		    value > -((int64_t)1 << 48) && value < (int64_t)1 << 48)
			fact_set_number(f, FACT_assert_ignored, (double)value);
}

/* Some kernels are given their message as a parameter. */
static const char *message_in_params(struct casefile *f, const struct culprit *c, const char *kernel)
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
static const char *about_choices(struct casefile *f, const struct assertion *a, const char *kernel)
{
	const char *about = assert_about_condition(kernel, a->one_of[0]), *text = "";

	for (size_t i = 0; i < a->n_one_of; i++) {
		if (strcmp(about, assert_about_condition(kernel, a->one_of[i])))
			about = "";
		text = pool_printf(f->pool, "%s%s`%s`", text, text[0] ? " or " : "", a->one_of[i]);
	}
	fact_set_text(f, FACT_assert_one_of, text);
	return about;
}

void assert_facts_of_dump(struct casefile *f, const struct culprit *c)
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
		about = assert_about_condition(kernel, condition);
	else if (c->assertion.n_one_of)
		about = about_choices(f, &c->assertion, kernel);
	else
		about = assert_about_kernel(kernel, c->kernel_text ? c->kernel_text : "");
	fact_set_text(f, FACT_assert_about, about);
	if (condition)
		set_bound(f, c, kernel, condition);
	set_ignored(f, c, kernel);
}
