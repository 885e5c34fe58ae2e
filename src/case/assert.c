/* SPDX-License-Identifier: Apache-2.0
 * What device-side asserts are about (see assert.h).
 */
#include "case/assert.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "case/known_message.h"

static const struct { const char *what, *kernel, *condition; } abouts[] = {
#define ABOUT(what, kernel, condition) {what, kernel, condition},
#include "kb/asserts.def"
};

static const struct { const char *what, *kernel; } kernels[] = {
#define KERNEL(what, kernel) {what, kernel},
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

const char *assert_about_kernel(const char *kernel, const char *full)
{
	for (size_t i = 0; i < COUNT(kernels); i++)
		if (is_like(kernel, kernels[i].kernel) || is_like(full, kernels[i].kernel))
			return kernels[i].what;
	return "";
}

const char *assert_about_condition(const char *kernel, const char *condition)
{
	for (size_t i = 0; i < COUNT(abouts); i++)
		if (is_like(kernel, abouts[i].kernel) && is_like(condition, abouts[i].condition))
			return abouts[i].what;
	return "";
}

bool assert_bound_in_text(const char *condition, double *bound)
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

bool assert_names_position(const char *line)
{
	for (size_t i = 0; i < COUNT(positions); i++)
		if (fnmatch(positions[i], line, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

/* The causes of a message that is in a condition, as in `n < size && "index out of bounds"`, or is all of it; "" = none. */
static const char *causes_of_words(const char *condition, struct pool *pool)
{
	const struct known_message *m = known_message(condition, NULL);

	for (const char *from = strchr(condition, '"'), *end; !m && from; from = strchr(end + 1, '"')) {
		end = strchr(from + 1, '"');
		if (!end)
			break;
		m = known_message(pool_copy(pool, from + 1, (size_t)(end - from - 1)), NULL);
	}
	return m ? m->causes : "";
}

void assert_facts_complete(struct casefile *f)
{
	bool open;

	if (!case_observed(f, GROUP_assert))
		return;
	if (!fact_known(f, FACT_assert_about))
		fact_set_text(f, FACT_assert_about, "");
	open = !fact_text(f, FACT_assert_about)[0] && fact_text(f, FACT_assert_condition)[0];
	if (!fact_known(f, FACT_assert_causes))
		fact_set_text(f, FACT_assert_causes,
			      open ? causes_of_words(fact_text(f, FACT_assert_condition), f->pool) : "");
	if (!fact_known(f, FACT_assert_op))
		fact_set_text(f, FACT_assert_op, "");
	if (!fact_known(f, FACT_assert_position))
		fact_set_flag(f, FACT_assert_position, false);
	if (!fact_known(f, FACT_assert_nan))
		fact_set_flag(f, FACT_assert_nan, false);
	if (!fact_known(f, FACT_assert_unread))
		fact_set_text(f, FACT_assert_unread, "");
}
