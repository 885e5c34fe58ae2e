/* SPDX-License-Identifier: Apache-2.0
 * What a core dump says about the values that failed: "labels[37] is 10".
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"

#define SHOWN		4
#define BOUND_MAX	((int64_t)1 << 48)
#define POINTER		((int64_t)1 << 40)	/* larger numbers are addresses */

static const struct { const char *kernel; unsigned number; } elements[] = {
#define ELEMENT(kernel, number) {kernel, number},
#include "kb/asserts.def"
};

static const char *const sums[] = {
#define SUMS(kernel) kernel,
#include "kb/asserts.def"
};

static const struct { const char *name; unsigned bytes; } types[] = {
	{"long", 8},  {"long long", 8},	    {"int64", 8}, {"int", 4},	      {"int32", 4}, {"short", 2},
	{"int16", 2}, {"unsigned char", 1}, {"uint8", 1}, {"signed char", 1}, {"int8", 1},
};

static unsigned bytes_of(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			return types[i].bytes;
	return 0;
}

/* "long" of "indexSelectSmallIndex<float, long, unsigned int, …>", number 1. */
static unsigned argument_bytes(const char *full, const char *function, unsigned number)
{
	const char *at = strstr(full, function), *from;
	int depth = 0;

	at = at ? strchr(at, '<') : NULL;
	for (from = at ? ++at : NULL; at && *at; at++) {
		if (depth == 0 && (*at == ',' || *at == '>')) {
			if (number-- == 0)
				return bytes_of(from, (size_t)(at - from));
			from = at + 1 + strspn(at + 1, " ");
		}
		if (*at == '<' || *at == '(')
			depth++;
		else if ((*at == '>' || *at == ')') && depth-- == 0)
			return 0;
	}
	return 0;
}

/* How large the elements are that were checked; the code may have used less of them. */
static unsigned element_bytes(const struct casefile *c, const struct culprit *k, const char *kernel, unsigned used)
{
	unsigned n = 0;
	const char *last = strrchr(kernel, ':');

	if (fact_known(c, FACT_assert_dtype))
		n = bytes_of(fact_text(c, FACT_assert_dtype), strlen(fact_text(c, FACT_assert_dtype)));
	for (size_t i = 0; !n && k->kernel_text && i < sizeof(elements) / sizeof(elements[0]); i++)
		if (fnmatch(elements[i].kernel, kernel, 0) == 0)
			n = argument_bytes(k->kernel_text, last ? last + 1 : kernel, elements[i].number);
	return n > used ? n : used;
}

static bool position_of(const struct checked *v, unsigned size, double *position)
{
	if (!v->base || v->at < v->base || (v->at - v->base) % size)
		return false;
	*position = (double)((v->at - v->base) / size);
	return true;
}

/* NULL when the value is not known. */
static const char *checked_text(struct casefile *c, const struct checked *v, unsigned size, bool *nan)
{
	double real;

	if (v->n_raw < size || !v->compared)
		return NULL;
	if (!v->compare.real)
		return pool_printf(c->pool, "%" PRId64, checked_integer(v->raw, size));
	if (!checked_real(v, &real))
		return NULL;
	*nan = *nan || !isfinite(real);
	return isnan(real) ? "nan" : isinf(real) ? (real < 0 ? "-inf" : "inf") : pool_printf(c->pool, "%.9g", real);
}

/* Then a value's position is not that of one of the user's numbers. */
static bool has_sums(const char *kernel)
{
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		if (fnmatch(sums[i], kernel, 0) == 0)
			return true;
	return false;
}

static const char *checked_place(struct casefile *c, const char *about, const char *kernel, bool known, double position)
{
	static const struct { const char *about, *noun; } nouns[] = {
		{"label", "label"}, {"index", "index"}, {"probability", "probability"}, {"range", "input"},
	};
	const char *noun = "value";

	for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++)
		if (!strcmp(about, nouns[i].about))
			noun = nouns[i].noun;
	if (has_sums(kernel))
		return known ? pool_printf(c->pool, "the sum up to position %.0f", position) : "the sum";
	if (!known)
		return pool_printf(c->pool, "the %s", noun);
	/* these two are given a tensor of one dimension */
	if (!strcmp(about, "label") && strstr(kernel, "_reduce_cuda_kernel_"))
		return pool_printf(c->pool, "labels[%.0f]", position);
	return pool_printf(c->pool, "the %s at position %.0f", noun, position);
}

static const char *append(struct casefile *c, const char *list, const char *more)
{
	return pool_printf(c->pool, "%s%s%s", list, list[0] ? ", " : "", more);
}

/* a < b is b > a. */
static enum sass_how turned_round(enum sass_how how)
{
	switch (how) {
	case SASS_LT:
		return SASS_GT;
	case SASS_GT:
		return SASS_LT;
	case SASS_LE:
		return SASS_GE;
	case SASS_GE:
		return SASS_LE;
	default:
		return how;
	}
}

/* What the value was compared with is the bound, if it was the value itself. */
static void bound_by_code(struct casefile *c, const struct checked *v, unsigned size)
{
	bool first = v->compare.n_a != 0;
	int64_t value = checked_integer(v->raw, size), a, b;
	enum sass_how how = v->compare.how;

	if (fact_known(c, FACT_assert_bound) || !v->compared || v->compare.real || !v->compare.known ||
	    v->n_raw < size || (v->compare.n_a && v->compare.n_b))
		return;
	a = (int64_t)(first ? v->compare.a : v->compare.b);
	b = (int64_t)(first ? v->compare.b : v->compare.a);
	if (v->compare.width == 4) {
		a = v->compare.is_signed ? (int32_t)a : (int64_t)(uint32_t)a;
		b = v->compare.is_signed ? (int32_t)b : (int64_t)(uint32_t)b;
		value = v->compare.is_signed ? value : (int64_t)(uint32_t)value;
	}
	if (!first)
		how = turned_round(how);
	if (how == SASS_LE || how == SASS_GT)
		b++;
	if (a != value || b <= 0 || b > BOUND_MAX || how == SASS_EQ || how == SASS_NE || (value >= 0 && value < b))
		return;
	fact_set_number(c, FACT_assert_bound, (double)b);
}

/* A value that the condition allows is not the one that failed it: the code was not followed correctly. */
static bool is_allowed(const struct casefile *c, const struct checked *v, const char *about, unsigned size)
{
	double real;
	int64_t value;

	if (v->n_raw < size || !v->compared)
		return false;
	if (v->compare.real)
		return !strcmp(about, "range") && checked_real(v, &real) && real >= 0 && real <= 1;
	value = checked_integer(v->raw, size);
	return (!strcmp(about, "label") || !strcmp(about, "index")) && fact_known(c, FACT_assert_bound) && value >= 0 &&
	       (double)value < fact_number(c, FACT_assert_bound, 0);
}

void dump_observe_values(struct casefile *c, const struct culprit *k, const char *kernel)
{
	const struct values *v = &k->values;
	const char *about = fact_known(c, FACT_assert_about) ? fact_text(c, FACT_assert_about) : "";
	const char *values = "", *places = "", *unread = "", *value, *place;
	bool nan = false, known, complete = v->n_kept > 0;
	double position = 0;
	unsigned size;

	for (size_t i = 0; i < v->n_kept; i++)
		if (is_allowed(c, &v->value[i], about, element_bytes(c, k, kernel, v->value[i].n))) {
			fact_set_text(c, FACT_assert_unread, "code");
			return;
		}
	for (size_t i = 0; i < v->n_kept; i++) {
		size = element_bytes(c, k, kernel, v->value[i].n);
		known = position_of(&v->value[i], size, &position);
		value = checked_text(c, &v->value[i], size, &nan);
		place = checked_place(c, about, kernel, known, position);
		complete = complete && value;
		if (i == 0 && known && !has_sums(kernel))
			fact_set_number(c, FACT_assert_at, position);
		if (i == 0 && value) {
			fact_set_text(c, FACT_assert_value, value);
			fact_set_flag(c, FACT_assert_nan, nan);
		}
		if (i == 0 && value && (!strcmp(about, "label") || !strcmp(about, "index")))
			bound_by_code(c, &v->value[i], size);
		if (i >= SHOWN)
			continue;
		if (known)
			places = append(c, places, place);
		if (value)
			values = append(c, values, pool_printf(c->pool, "%s is %s", place, value));
	}
	if (v->n_kept > SHOWN) {
		const char *more = v->n_kept == VALUES_MAX ? " and others"
							   : pool_printf(c->pool, " and %zu more", v->n_kept - SHOWN);

		values = pool_printf(c->pool, "%s%s", values, more);
		places = pool_printf(c->pool, "%s%s", places, more);
	}
	if (complete)
		fact_set_text(c, FACT_assert_values, values);
	if (places[0] && v->n_kept)
		fact_set_text(c, FACT_assert_places, places);
	if (!complete && v->answer == VALUES_LOST)
		unread = "code";
	else if (!complete && (v->answer == VALUES_PLACES || v->answer == VALUES_UNREAD))
		unread = "memory";
	fact_set_text(c, FACT_assert_unread, unread);
}

void dump_observe_index(struct casefile *c, const struct culprit *k)
{
	const struct checked *v = &k->values.value[0];
	double position;
	int64_t index;

	if (k->fault == FAULT_ASSERT || k->values.answer != VALUES_FOUND || !k->values.n_kept || v->n_raw < v->n ||
	    v->n < 4)
		return;
	index = checked_integer(v->raw, v->n);
	if (index > POINTER || index < -POINTER)
		return;
	fact_set_text(c, FACT_fault_index, pool_printf(c->pool, "%" PRId64, index));
	if (position_of(v, v->n, &position))
		fact_set_number(c, FACT_fault_index_at, position);
}
