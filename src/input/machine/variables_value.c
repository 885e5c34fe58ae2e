/* SPDX-License-Identifier: Apache-2.0
 * Values of environment variables against what their readers take.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "input/machine/variables_priv.h"
#include "base/banned.h"

bool value_is_on(const char *value)
{
	static const char *const off[] = {"", "0", "false", "no", "off", "n", "f"};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (strcasecmp(value, off[i]) == 0)
			return false;
	return true;
}

/* Is the word of `len` bytes one of "a|b|c", in any case? */
static bool one_of(const char *word, size_t len, const char *allowed)
{
	size_t n;

	for (;; allowed += n + 1) {
		n = strcspn(allowed, "|");
		if (n == len && strncasecmp(word, allowed, n) == 0)
			return true;
		if (!allowed[n])
			return false;
	}
}

static const char *check_int(struct pool *pool, const char *value, const char *range)
{
	long long low, high, n;
	char *end;

	if (sscanf(range, "%lld..%lld", &low, &high) != 2)
		return NULL;
	errno = 0;
	n = strtoll(value, &end, 10);
	if (end == value || *end)
		return pool_printf(pool, "'%.80s' is not a whole number", value);
	if (errno || n < low || n > high)
		return pool_printf(pool, "%.40s is not between %lld and %lld", value, low, high);
	return NULL;
}

static const char *check_number(struct pool *pool, const char *value, const char *range)
{
	long long low, high;
	double n;
	char *end;

	if (sscanf(range, "%lld..%lld", &low, &high) != 2)
		return NULL;
	n = strtod(value, &end);
	if (end == value || *end || n != n)
		return pool_printf(pool, "'%.80s' is not a number", value);
	if (n < (double)low || n > (double)high)
		return pool_printf(pool, "%.40s is not between %lld and %lld", value, low, high);
	return NULL;
}

static const char *with_commas(struct pool *pool, const char *allowed)
{
	char *copy = pool_strdup(pool, allowed);

	for (char *s = copy; *s; s++)
		if (*s == '|')
			*s = ' ';
	return copy;
}

static const char *check_word(struct pool *pool, const char *value, const char *allowed)
{
	if (one_of(value, strlen(value), allowed))
		return NULL;
	return pool_printf(pool, "'%.80s' is none of: %s", value, with_commas(pool, allowed));
}

static const char *check_list(struct pool *pool, const char *value, const char *allowed)
{
	size_t n;

	for (;; value += n + 1) {
		while (*value == ' ')
			value++;
		n = strcspn(value, ",");
		if (!one_of(value, n, allowed))
			return pool_printf(pool, "'%.*s' is none of: %s", (int)(n < 80 ? n : 80), value, with_commas(pool, allowed));
		if (!value[n])
			return NULL;
	}
}

/* "^Tree,Ring"; "allreduce:tree;..." is a language of its own */
static const char *check_algo(struct pool *pool, const char *value, const char *allowed)
{
	if (strpbrk(value, ":;"))
		return NULL;
	return check_list(pool, value + (*value == '^'), allowed);
}

static const char *check_level(struct pool *pool, const char *value)
{
	if (*value && value[strspn(value, "0123456789")] == '\0')
		return NULL;	/* the old numbers */
	return check_word(pool, value, "LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|NODE|SYS");
}

/* "8.0;9.0a+PTX", "Ampere Hopper", "All" */
static const char *check_archs(struct pool *pool, const char *value)
{
	static const char names[] = "All|Common|Kepler|Kepler+Tesla|Kepler+Tegra|Maxwell|Maxwell+Tegra|Pascal|Volta|Turing|Ampere|Ada|Hopper|"
				    "Blackwell|Blackwell+Tegra";
	size_t n, digits;

	for (; *value; value += n) {
		value += strspn(value, " ;");
		n = strcspn(value, " ;");
		if (n == 0 || one_of(value, n, names) || one_of(value, n, "Hopper+PTX|Ampere+PTX|Ada+PTX|Blackwell+PTX|Turing+PTX|Volta+PTX"))
			continue;
		digits = strspn(value, "0123456789");
		if (digits && digits < 3 && value[digits] == '.' && isdigit((unsigned char)value[digits + 1])) {
			digits += 2;
			digits += value[digits] == 'a' || value[digits] == 'f';
			if (digits == n || (n == digits + 4 && strncmp(value + digits, "+PTX", 4) == 0))
				continue;
		}
		return pool_printf(pool, "'%.*s' is not an architecture (8.0, 9.0a, 12.0+PTX): PyTorch refuses it when an extension is built",
				   (int)(n < 60 ? n : 60), value);
	}
	return NULL;
}

/* ":4096:8", ":16:8:4096:2" or "0:0" */
static const char *check_workspace(struct pool *pool, const char *value)
{
	const char *s = value;
	int pairs = 0;
	size_t n;

	if (strcmp(value, "0:0") == 0)
		return NULL;
	for (; *s == ':'; pairs++)
		for (int k = 0; k < 2; k++) {
			n = *s == ':' ? strspn(s + 1, "0123456789") : 0;
			if (n == 0 || n > 9)
				goto bad;
			s += 1 + n;
		}
	if (pairs && !*s)
		return NULL;
bad:
	return pool_printf(pool, "'%.80s' is not of the form :4096:8 or :16:8", value);
}

static const char *check_alloc(struct pool *pool, const struct variable *v)
{
	struct alloc_conf c;

	alloc_conf_parse(&c, pool, v->name, v->value);
	for (int i = 0; i < c.n; i++)
		if (c.item[i].mistake && c.item[i].fatal)
			return pool_printf(pool, "%s: %s", c.item[i].key, c.item[i].mistake);
	return c.mistake;
}

static const char *check(struct pool *pool, const struct known_variable *k, const struct variable *v)
{
	switch (k->kind) {
	case VALUE_TEXT:
		return NULL;
	case VALUE_INT:
		return check_int(pool, v->value, k->allowed);
	case VALUE_NUMBER:
		return check_number(pool, v->value, k->allowed);
	case VALUE_WORD:
		return check_word(pool, v->value, k->allowed);
	case VALUE_LIST:
		return check_list(pool, v->value, k->allowed);
	case VALUE_ALGO:
		return check_algo(pool, v->value, k->allowed);
	case VALUE_LEVEL:
		return check_level(pool, v->value);
	case VALUE_ARCHS:
		return check_archs(pool, v->value);
	case VALUE_ALLOC:
		return check_alloc(pool, v);
	case VALUE_WORKSPACE:
		return check_workspace(pool, v->value);
	}
	return NULL;
}

const char *value_mistake(struct pool *pool, const struct known_variable *k, const struct variable *v)
{
	const char *mistake;
	size_t n = strlen(v->value);

	if (v->odd && k->kind != VALUE_TEXT)
		return pool_printf(pool, "the value has %zu bytes, or bytes that are no text", v->length);
	if (n == 0)
		return NULL;	/* everybody takes an empty value for "not set", or says so elsewhere */
	mistake = check(pool, k, v);
	if (mistake && n > 1 && (*v->value == '"' || *v->value == '\'') && v->value[n - 1] == *v->value)
		return pool_printf(pool, "the quotation marks are part of the value %.80s", v->value);
	return mistake;
}
