/* SPDX-License-Identifier: Apache-2.0
 * Plain data: values, and JSON (see plain.h).
 */
#include "formats/plain.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "formats/plain_build.h"

struct plain *plain_new(struct plain_build *b, enum plain_kind kind)
{
	struct plain *p;

	if (++b->n > PLAIN_VALUES_MAX)
		return NULL;
	p = pool_alloc(b->pool, sizeof(*p));
	p->kind = kind;
	return p;
}

struct plain *plain_new_text(struct plain_build *b, const char *text, size_t n)
{
	struct plain *p = plain_new(b, PLAIN_TEXT);

	if (p)
		p->text = pool_copy(b->pool, text, strnlen(text, n));
	return p;
}

bool plain_add(struct plain_build *b, struct plain *to, struct plain *item)
{
	if (!item)
		return false;
	if (to->n == to->room) {
		size_t room = to->room ? to->room * 2 : 4;
		struct plain **list;

		b->n += room;	/* what was outgrown stays the pool's */
		if (b->n > PLAIN_VALUES_MAX)
			return false;
		list = pool_alloc(b->pool, room * sizeof(*list));
		if (to->n)
			memcpy(list, to->item, to->n * sizeof(*list));
		to->item = list;
		to->room = room;
	}
	to->item[to->n++] = item;
	return true;
}

static struct plain *from_json(struct plain_build *b, const json_t *o)
{
	struct plain *p;
	const char *key;
	json_t *v;
	size_t i;

	switch (json_typeof(o)) {
	case JSON_STRING:
		return plain_new_text(b, json_string_value(o), json_string_length(o));
	case JSON_INTEGER:
	case JSON_TRUE:
	case JSON_FALSE:
		p = plain_new(b, json_is_integer(o) ? PLAIN_INT : PLAIN_BOOL);
		if (p)
			p->number = json_is_integer(o) ? json_integer_value(o) : json_is_true(o);
		return p;
	case JSON_REAL:
		p = plain_new(b, PLAIN_REAL);
		if (p)
			p->real = json_real_value(o);
		return p;
	case JSON_ARRAY:
		p = plain_new(b, PLAIN_LIST);
		json_array_foreach(o, i, v)
			if (!p || !plain_add(b, p, from_json(b, v)))
				return NULL;
		return p;
	case JSON_OBJECT:
		p = plain_new(b, PLAIN_DICT);
		json_object_foreach((json_t *)(uintptr_t)o, key, v)
			if (!p || !plain_add(b, p, plain_new_text(b, key, strlen(key))) ||
			    !plain_add(b, p, from_json(b, v)))
				return NULL;
		return p;
	default:
		return plain_new(b, PLAIN_NONE);
	}
}

struct plain *plain_from_json(const char *text, size_t n, struct pool *pool, struct err *e)
{
	struct plain_build b = {.pool = pool};
	json_error_t where;
	json_t *o = json_loadb(text, n, 0, &where);
	struct plain *p;

	if (!o) {
		err_set(e, -EINVAL, "not JSON: line %d: %.100s", where.line, where.text);
		return NULL;
	}
	p = from_json(&b, o);
	json_decref(o);
	if (!p)
		err_set(e, -EFBIG, "more than %u values", PLAIN_VALUES_MAX);
	return p;
}

const struct plain *plain_get(const struct plain *p, const char *key)
{
	if (!p || p->kind != PLAIN_DICT)
		return NULL;
	for (size_t i = 0; i + 1 < p->n; i += 2)
		if (p->item[i]->kind == PLAIN_TEXT && !strcmp(p->item[i]->text, key))
			return p->item[i + 1];
	return NULL;
}

const struct plain *plain_at(const struct plain *p, size_t i)
{
	return p && p->kind == PLAIN_LIST && i < p->n ? p->item[i] : NULL;
}

const char *plain_text(const struct plain *p)
{
	return p && p->kind == PLAIN_TEXT ? p->text : NULL;
}

bool plain_number(const struct plain *p, int64_t *to)
{
	if (!p || (p->kind != PLAIN_INT && p->kind != PLAIN_BOOL))
		return false;
	*to = p->number;
	return true;
}

bool plain_true(const struct plain *p)
{
	return p && (p->kind == PLAIN_INT || p->kind == PLAIN_BOOL) && p->number;
}
