/* SPDX-License-Identifier: Apache-2.0
 * Plain structs as JSON and back (see fields.h).
 */
#include "base/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/banned.h"

#define LIST_MAX 65536
#define UNLIMITED "unlimited"

static int64_t get_number(const struct field *f, const char *at)
{
	int32_t narrow;
	uint32_t plain;
	int64_t wide;

	if (f->size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	if (f->is_signed) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&plain, at, sizeof(plain));
	return plain;
}

static void set_number(const struct field *f, char *at, int64_t value)
{
	uint32_t narrow = (uint32_t)value;	/* two's complement: the same bytes for both */

	if (f->size != sizeof(value) && f->size != sizeof(narrow))
		BUG("a number of another size");
	if (f->size == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

/* --- there ------------------------------------------------------------------------------------ */

/* Names of files may be anything; a bundle is UTF-8. */
static json_t *text(const char *s)
{
	json_t *t = json_string(s);
	char *copy;

	if (t)
		return t;
	copy = xstrdup(s);
	str_make_utf8(copy);
	t = json_string(copy);
	free(copy);
	return t;
}

static json_t *write_list(const struct field *f, const char *it)
{
	const char *list;
	size_t n;
	json_t *a;

	memcpy(&list, it + f->at, sizeof(list));
	memcpy(&n, it + f->count, sizeof(n));
	if ((int64_t)n == f->unknown)
		return NULL;
	a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, f->kind == FIELD_LIST ? fields_write(f->inner, list + i * f->inner->size)
							       : text(((const char *const *)(const void *)list)[i]));
	return a;
}

static json_t *write_number(const struct field *f, const char *at)
{
	int64_t value = get_number(f, at);

	if (value == f->unknown)
		return NULL;
	if (f->kind == FIELD_FLAG)
		return json_boolean(value);
	if (f->kind == FIELD_LIMIT && value == INT64_MAX)
		return json_string(UNLIMITED);
	if (f->kind != FIELD_WORD)
		return json_integer(value);
	for (int i = 0; f->words[i]; i++)
		if (i == value)
			return json_string(f->words[i]);
	return NULL;
}

/* NULL: it is not known. */
static json_t *write_field(const struct field *f, const char *it)
{
	const char *at = it + f->at, *words;
	json_t *o;

	switch (f->kind) {
	case FIELD_BOOL:
		return *(const bool *)at ? json_true() : NULL;
	case FIELD_TEXT:
	case FIELD_LINE:
		memcpy(&words, at, sizeof(words));
		return words ? text(words) : NULL;
	case FIELD_CHARS:
		return at[0] ? text(at) : NULL;
	case FIELD_OBJECT:
		o = fields_write(f->inner, at);
		if (json_object_size(o) > 0)
			return o;
		json_decref(o);
		return NULL;
	case FIELD_GROUP:
		return fields_write(f->inner, at);
	case FIELD_LIST:
	case FIELD_TEXTS:
		return write_list(f, it);
	default:
		return write_number(f, at);
	}
}

json_t *fields_write(const struct fields *fs, const void *it)
{
	json_t *o = json_object(), *v;

	for (const struct field *f = fs->field; f->key; f++) {
		v = write_field(f, it);
		if (v)
			json_object_set_new(o, f->key, v);
	}
	return o;
}

/* --- and back --------------------------------------------------------------------------------- */

void fields_init(const struct fields *fs, void *it)
{
	memset(it, 0, fs->size);
	for (const struct field *f = fs->field; f->key; f++) {
		char *at = (char *)it + f->at;

		switch (f->kind) {
		case FIELD_NUMBER:
		case FIELD_WORD:
		case FIELD_FLAG:
		case FIELD_LIMIT:
			set_number(f, at, f->unknown);
			break;
		case FIELD_OBJECT:
		case FIELD_GROUP:
			fields_init(f->inner, at);
			break;
		case FIELD_LIST:
		case FIELD_TEXTS:
			memcpy((char *)it + f->count, &f->unknown, sizeof(size_t));
			break;
		default:	/* NULL, "" and false */
			break;
		}
	}
}

static int wrong(struct err *e, const char *path, const char *key, const char *wanted)
{
	return err_set(e, -EINVAL, "'%s%s%s' in the bundle should be %s", path, path[0] ? "." : "", key, wanted);
}

static int read_number(const struct field *f, const json_t *v, char *at, const char *path, struct err *e)
{
	json_int_t n = json_integer_value(v);
	bool fits = f->size == 8 || (f->is_signed ? n >= INT32_MIN && n <= INT32_MAX : n >= 0 && n <= UINT32_MAX);

	if (!json_is_integer(v) || !fits)
		return wrong(e, path, f->key, "a whole number that fits");
	set_number(f, at, n);
	return 0;
}

static int read_limit(const struct field *f, const json_t *v, char *at, const char *path, struct err *e)
{
	const char *word = json_string_value(v);
	json_int_t n = word && strcmp(word, UNLIMITED) == 0 ? INT64_MAX : json_integer_value(v);

	if ((!json_is_integer(v) && n != INT64_MAX) || n < 0)
		return wrong(e, path, f->key, "a whole number that is not negative, or \"" UNLIMITED "\"");
	set_number(f, at, n);
	return 0;
}

/* It is printed among other lines: nothing in it may end one or speak to the terminal. */
static int read_one_line(const struct field *f, const json_t *v, char *at, const char *path, struct pool *pool, struct err *e)
{
	const char *s = json_string_value(v);
	char *line;

	if (!s || strlen(s) > FIELD_LINE_MAX)
		return wrong(e, path, f->key, "a text that is not so long");
	line = pool_strdup(pool, s);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
	memcpy(at, &line, sizeof(line));
	return 0;
}

static int read_word(const struct field *f, const json_t *v, char *at, const char *path, struct err *e)
{
	const char *word = json_string_value(v);

	for (int i = 0; word && f->words[i]; i++) {
		if (strcmp(word, f->words[i]) != 0)
			continue;
		set_number(f, at, i);
		return 0;
	}
	return wrong(e, path, f->key, "one of the words that docs/doctor.md lists");
}

static int read_list(const struct field *f, const json_t *v, char *it, const char *path, struct pool *pool, struct err *e)
{
	size_t n = json_array_size(v), size = f->kind == FIELD_LIST ? f->inner->size : sizeof(char *);
	char inner[160];
	const char *s;
	char *list;

	if (!json_is_array(v) || n > LIST_MAX)
		return wrong(e, path, f->key, "a list (of at most 65536)");
	list = pool_alloc(pool, (n + 1) * size);
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(v, i);

		snprintf(inner, sizeof(inner), "%s%s%s[%zu]", path, path[0] ? "." : "", f->key, i);
		if (f->kind == FIELD_LIST) {
			if (fields_read(f->inner, o, list + i * size, inner, pool, e))
				return -EINVAL;
			continue;
		}
		if (!json_is_string(o))
			return wrong(e, "", inner, "a text");
		s = pool_strdup(pool, json_string_value(o));
		memcpy(list + i * size, &s, sizeof(s));
	}
	memcpy(it + f->at, &list, sizeof(list));
	memcpy(it + f->count, &n, sizeof(n));
	return 0;
}

static int read_field(const struct field *f, const json_t *v, char *it, const char *path, struct pool *pool, struct err *e)
{
	char inner[160], *at = it + f->at;
	const char *s;

	switch (f->kind) {
	case FIELD_BOOL:
		if (!json_is_boolean(v))
			return wrong(e, path, f->key, "true or false");
		*(bool *)at = json_is_true(v);
		return 0;
	case FIELD_TEXT:
		if (!json_is_string(v))
			return wrong(e, path, f->key, "a text");
		s = pool_strdup(pool, json_string_value(v));
		memcpy(at, &s, sizeof(s));
		return 0;
	case FIELD_CHARS:
		if (!json_is_string(v) || !str_copy(at, f->size, json_string_value(v)))
			return wrong(e, path, f->key, "a text that is not so long");
		return 0;
	case FIELD_LINE:
		return read_one_line(f, v, at, path, pool, e);
	case FIELD_FLAG:
		if (!json_is_boolean(v))
			return wrong(e, path, f->key, "true or false");
		set_number(f, at, json_is_true(v));
		return 0;
	case FIELD_LIMIT:
		return read_limit(f, v, at, path, e);
	case FIELD_OBJECT:
	case FIELD_GROUP:
		snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", f->key);
		return fields_read(f->inner, v, at, inner, pool, e);
	case FIELD_LIST:
	case FIELD_TEXTS:
		return read_list(f, v, it, path, pool, e);
	case FIELD_WORD:
		return read_word(f, v, at, path, e);
	default:
		return read_number(f, v, at, path, e);
	}
}

/* A misspelt key would silently be "not known": whoever writes a bundle by hand wants to hear of it. */
static int check_keys(const struct fields *fs, const json_t *o, const char *path, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		const struct field *f = fs->field;

		while (f->key && strcmp(f->key, key) != 0)
			f++;
		if (!f->key)
			return err_set(e, -EINVAL, "'%s%s%.60s' in the bundle is no key that cuwhy knows", path, path[0] ? "." : "", key);
	}
	return 0;
}

int fields_read(const struct fields *fs, const json_t *o, void *it, const char *path, struct pool *pool, struct err *e)
{
	fields_init(fs, it);
	if (!json_is_object(o))
		return wrong(e, "", path[0] ? path : "it", "an object");
	if (check_keys(fs, o, path, e))
		return -EINVAL;
	for (const struct field *f = fs->field; f->key; f++) {
		const json_t *v = json_object_get(o, f->key);

		if (v && !json_is_null(v) && read_field(f, v, it, path, pool, e))
			return -EINVAL;
	}
	return fs->check ? fs->check(it, pool, e) : 0;
}

/* --- what fits -------------------------------------------------------------------------------- */

static void read_fitting_list(const struct field *f, const json_t *v, char *it, struct pool *pool)
{
	size_t n = json_array_size(v) < LIST_MAX ? json_array_size(v) : LIST_MAX, used = 0;
	char *list;

	if (!json_is_array(v))
		return;
	list = pool_alloc(pool, (n + 1) * f->inner->size);
	for (size_t i = 0; i < json_array_size(v) && used < n; i++)
		if (json_is_object(json_array_get(v, i)))
			fields_read_fitting(f->inner, json_array_get(v, i), list + used++ * f->inner->size, pool);
	memcpy(it + f->at, &list, sizeof(list));
	memcpy(it + f->count, &used, sizeof(used));
}

void fields_read_fitting(const struct fields *fs, const json_t *o, void *it, struct pool *pool)
{
	struct err e;

	fields_init(fs, it);
	for (const struct field *f = fs->field; f->key; f++) {
		const json_t *v = json_object_get(o, f->key);

		if (f->kind == FIELD_OBJECT || f->kind == FIELD_GROUP)
			fields_read_fitting(f->inner, v, (char *)it + f->at, pool);
		else if (f->kind == FIELD_LIST)
			read_fitting_list(f, v, it, pool);
		else if (v)
			read_field(f, v, it, "", pool, &e);
	}
	if (fs->check)
		fs->check(it, pool, &e);
}
