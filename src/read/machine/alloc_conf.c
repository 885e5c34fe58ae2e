/* SPDX-License-Identifier: Apache-2.0
 * PYTORCH_ALLOC_CONF as PyTorch's allocator reads it: key:value, lists in brackets, spaces are ignored.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/machine/variables.h"

enum key_kind { KEY_MB, KEY_FRACTION, KEY_SHARE, KEY_BOOL, KEY_POWER2, KEY_DIVISIONS, KEY_BACKEND };

static const struct key { const char *name; enum key_kind kind; const char *range; bool native; const char *says; } keys[] = {
#define KEY(name, kind, range, native, says)	{#name, KEY_##kind, range, native, says},
#include "kb/alloc_conf.def"
};

#define N_KEYS	(sizeof(keys) / sizeof(keys[0]))

static const struct key *alloc_key(const char *name)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* Like C++'s stoull: anything after the digits is ignored ("512MB" is 512). */
static bool whole_number(const char *s, unsigned long long *n)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*n = strtoull(s, &end, 10);
	return errno == 0;
}

static bool power_of_two(unsigned long long n)
{
	return n && (n & (n - 1)) == 0;
}

static bool in_range(unsigned long long n, const char *range)
{
	unsigned long long low = 0, high = UINT64_MAX;

	sscanf(range, "%llu..%llu", &low, &high);
	return n >= low && n <= high;
}

/* "[256:1,512:2,>:4]" */
static bool divisions_list(const char *s)
{
	unsigned long long n;

	for (s++; *s && *s != ']';) {
		if (*s == '>')
			s++;
		else if (!whole_number(s, &n) || !power_of_two(n))
			return false;
		else
			s += strspn(s, "0123456789");
		if (*s != ':' || !whole_number(s + 1, &n) || (n && !power_of_two(n)))
			return false;
		s += 1 + strspn(s + 1, "0123456789");
		if (*s == ',')
			s++;
		else if (*s != ']')
			return false;
	}
	return *s == ']';
}

static bool alloc_value_fits(const struct key *k, const char *value)
{
	unsigned long long n = 0;
	double x;
	char *end;

	switch (k->kind) {
	case KEY_MB:
		return whole_number(value, &n) && in_range(n, k->range);
	case KEY_POWER2:
		return whole_number(value, &n) && power_of_two(n) && in_range(n, k->range);
	case KEY_BOOL:
		return strcmp(value, "True") == 0 || strcmp(value, "False") == 0;
	case KEY_BACKEND:
		return strcmp(value, "native") == 0 || strcmp(value, "cudaMallocAsync") == 0;
	case KEY_DIVISIONS:
		return *value == '[' ? divisions_list(value) : whole_number(value, &n) && power_of_two(n);
	case KEY_FRACTION:
	case KEY_SHARE:
		x = strtod(value, &end);
		if (end == value)
			return false;
		return k->kind == KEY_SHARE ? x >= 0 && x <= 1 : x > 0 && x < 1;
	}
	return false;
}

static void keep_value(struct alloc_conf *c, const struct key *k, const char *value)
{
	if (strcmp(k->name, "expandable_segments") == 0)
		c->expandable_segments = strcmp(value, "True") == 0;
	else if (strcmp(k->name, "max_split_size_mb") == 0)
		c->max_split_size_mb = strtoll(value, NULL, 10);
	else if (strcmp(k->name, "garbage_collection_threshold") == 0)
		c->garbage_collection_threshold = strtod(value, NULL);
	else if (strcmp(k->name, "per_process_memory_fraction") == 0)
		c->memory_fraction = strtod(value, NULL);
	else if (strcmp(k->name, "backend") == 0)
		c->backend = value;
}

static const char *unknown_key(struct pool *pool, const char *key)
{
	const char *names[N_KEYS + 1] = {NULL}, *near;

	if (strchr(key, '='))
		return "a key and its value are joined with ':', not with '='";
	if (strchr(key, '"') || strchr(key, '\''))
		return "the quotation marks are part of the value";
	for (size_t i = 0; i < N_KEYS; i++)
		names[i] = keys[i].name;
	near = strlen(key) < 48 ? str_nearest(key, names) : NULL;
	return near ? pool_printf(pool, "PyTorch does not know this key; did you mean %s?", near)
		    : "PyTorch does not know this key";
}

static void alloc_judge(struct alloc_conf *c, struct pool *pool, struct alloc_item *item)
{
	const struct key *k = alloc_key(item->key);

	for (struct alloc_item *before = c->item; before < item; before++)
		if (strcmp(before->key, item->key) == 0)
			item->mistake = "it is given twice: the last one counts";
	if (!k) {
		item->mistake = unknown_key(pool, item->key);
		item->fatal = true;
	} else if (!*item->value) {
		item->mistake = "it has no value";
		item->fatal = true;
	} else if (!alloc_value_fits(k, item->value)) {
		item->mistake = k->says;
		item->fatal = true;
	} else {
		keep_value(c, k, item->value);
	}
}

/* Items that have no effect together with another one. */
static void alloc_judge_together(struct alloc_conf *c)
{
	bool async = c->backend && strcmp(c->backend, "cudaMallocAsync") == 0;

	for (int i = 0; i < c->n; i++) {
		struct alloc_item *item = &c->item[i];
		const struct key *k = alloc_key(item->key);

		if (item->mistake || !k)
			continue;
		if (async && k->native)
			item->mistake = "backend:cudaMallocAsync ignores it";
		else if (strcmp(item->key, "garbage_collection_threshold") == 0 && c->memory_fraction < 0)
			item->mistake = "it has no effect without a memory fraction below 1 (torch.cuda.set_per_process_memory_fraction)";
		else if (strcmp(item->key, "max_split_size_mb") == 0 && c->expandable_segments == 1)
			item->mistake = "it has little effect with expandable_segments:True";
	}
}

/* From here to the comma that ends the item; commas in brackets do not. */
static size_t item_length(const char *s, bool *closed)
{
	size_t n = 0;
	int depth = 0;

	for (; s[n] && (s[n] != ',' || depth); n++) {
		depth += s[n] == '[';
		depth -= s[n] == ']' && depth;
	}
	*closed = depth == 0;
	return n;
}

static char *without_spaces(struct pool *pool, const char *value)
{
	size_t n = strnlen(value, VALUE_MAX), used = 0;
	char *copy = pool_copy(pool, value, n);

	for (size_t i = 0; i < n; i++)
		if (!isspace((unsigned char)copy[i]))
			copy[used++] = copy[i];
	copy[used] = '\0';
	return copy;
}

void alloc_conf_parse(struct alloc_conf *out, struct pool *pool, const char *variable, const char *value)
{
	const char *s, *colon;
	bool closed = true;
	size_t n;

	*out = (struct alloc_conf){.expandable_segments = -1,
				   .max_split_size_mb = -1,
				   .garbage_collection_threshold = -1,
				   .memory_fraction = -1};
	if (!value)
		return;
	out->variable = variable;
	for (s = without_spaces(pool, value); *s; s += n + (s[n] == ',')) {
		struct alloc_item *item = &out->item[out->n];

		if (out->n == ALLOC_ITEMS_MAX) {
			out->mistake = "it has more items than there are keys";
			break;
		}
		n = item_length(s, &closed);
		colon = memchr(s, ':', n);
		item->key = pool_copy(pool, s, colon ? (size_t)(colon - s) : n);
		item->value = colon ? pool_copy(pool, colon + 1, n - (size_t)(colon + 1 - s)) : pool_strdup(pool, "");
		alloc_judge(out, pool, item);
		out->n++;
	}
	if (!closed)
		out->mistake = "a bracket is not closed";
	alloc_judge_together(out);
}
