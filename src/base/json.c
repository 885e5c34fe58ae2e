/* SPDX-License-Identifier: Apache-2.0
 * JSON by table (see json.h).
 */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"

#define LIST_MAX 65536
#define UNLIMITED "unlimited"

json_t *json_text(const char *s)
{
	json_t *o;
	char *copy;

	if (!s)
		return json_null();
	o = json_string(s);
	if (o)
		return o;
	copy = xstrdup(s);
	str_make_utf8(copy);
	o = json_string(copy);
	free(copy);
	return o ? o : json_null();
}

json_t *json_bytes(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_null();
}

json_t *json_hex(uint64_t n)
{
	return json_sprintf("0x%" PRIx64, n);
}

json_t *json_triple(const uint32_t n[3])
{
	return json_pack("[I,I,I]", (json_int_t)n[0], (json_int_t)n[1], (json_int_t)n[2]);
}

void json_append_text(json_t *list, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	json_array_append_new(list, json_text(text));
	free(text);
}

/* At least the number of values in a JSON text: each but the first follows one of these, outside of strings. */
static size_t json_count(const char *text, size_t len)
{
	size_t n = 1;
	bool inside = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			inside = !inside;
		else if (inside && text[i] == '\\')
			i++;
		else if (!inside && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
			n++;
	}
	return n;
}

json_t *json_read(const char *path, size_t max, struct err *e)
{
	json_error_t where = {.line = 0};
	struct buf b;
	json_t *o = NULL;

	buf_init(&b, max);
	if (fs_read(path, &b, e) == 0) {
		if (json_count(b.data, b.len) > JSON_VALUES_MAX)
			err_set(e, -EFBIG, "'%s' has more than %d values", path, JSON_VALUES_MAX);
		else if (!(o = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, &where)))
			err_set(e, -EINVAL, "'%s' is not JSON: line %d: %.100s", path, where.line, where.text);
	}
	buf_release(&b);
	return o;
}

static json_t *changed_text(const json_t *j, char *(*change)(char *text, void *arg), void *arg)
{
	const char *before = json_string_value(j);
	char *text = change(xstrdup(before), arg);
	json_t *after = strcmp(text, before) ? json_string(text) : NULL;

	free(text);
	return after;
}

void json_change_texts(json_t *o, char *(*change)(char *text, void *arg), void *arg)
{
	const char *key;
	json_t *v, *after;
	size_t i;

	json_array_foreach(o, i, v) {
		json_change_texts(v, change, arg);
		if (json_is_string(v) && (after = changed_text(v, change, arg)))
			json_array_set_new(o, i, after);
	}
	json_object_foreach(o, key, v) {
		json_change_texts(v, change, arg);
		if (json_is_string(v) && (after = changed_text(v, change, arg)))
			json_object_set_new(o, key, after);
	}
}

static void put_escaped(FILE *out, uint32_t code)
{
	if (code < 0x10000)
		fprintf(out, "\\u%04" PRIX32, code);
	else
		fprintf(out, "\\u%04" PRIX32 "\\u%04" PRIX32, 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

int json_write(FILE *out, const json_t *o, size_t flags)
{
	char *text = json_dumps(o, flags), *from = text, *s = text, *end = text ? text + strlen(text) : NULL;
	uint32_t code;
	size_t len;

	for (; s < end; s += len) {
		len = str_character(s, (size_t)(end - s), &code);
		len = len ? len : 1;
		if (str_harmless(code))
			continue;
		fwrite(from, 1, (size_t)(s - from), out);
		put_escaped(out, code);
		from = s + len;
	}
	fwrite(from ? from : "", 1, (size_t)(end - from), out);
	free(text);
	return text && !ferror(out) ? 0 : -1;
}

char *json_string_of(const json_t *o, size_t flags)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool failed = !out || json_write(out, o, flags) != 0;

	if ((out && fclose(out) != 0) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

void json_print(FILE *out, json_t *o)
{
	private_hide_in(o, false);
	json_write(out, o, JSON_COMPACT);
	putc('\n', out);
	json_decref(o);
}

static json_t *row_value(const struct json_row *r)
{
	switch (r->kind) {
	case ROW_NULL:
		return json_null();
	case ROW_BOOL:
		return json_boolean(r->number);
	case ROW_INT:
		return json_integer(r->number);
	case ROW_BYTES:
		return json_bytes(r->bytes);
	case ROW_HEX:
		return json_hex(r->bytes);
	case ROW_TEXT:
		return json_text(r->text);
	case ROW_VALUE:
		return r->value;
	case ROW_SHARED:
		return json_incref(r->value);
	default:
		return NULL;
	}
}

void json_rows_add(json_t *object, const struct json_row *rows)
{
	for (; rows->key; rows++) {
		json_t *value = row_value(rows);

		if (value)
			json_object_set_new(object, rows->key, value);
	}
}

json_t *json_rows_new(const struct json_row *rows)
{
	json_t *o = json_object();

	json_rows_add(o, rows);
	return o;
}

static int64_t member_get(const void *at, size_t size, bool is_signed)
{
	union { int8_t i1; uint8_t u1; int16_t i2; uint16_t u2; int32_t i4; uint32_t u4; int64_t i8; } n;

	if (size > sizeof(n))
		BUG("a number of another size");
	memcpy(&n, at, size);
	switch (size) {
	case 1:
		return is_signed ? n.i1 : n.u1;
	case 2:
		return is_signed ? n.i2 : n.u2;
	case 4:
		return is_signed ? n.i4 : (int64_t)n.u4;
	case 8:
		return n.i8;
	default:
		BUG("a number of another size");
	}
}

static int64_t field_number(const struct field *f, const char *at)
{
	return member_get(at, f->size, f->is_signed);
}

static void field_set(const struct field *f, char *at, int64_t value)
{
	/* two's complement: the same bytes for signed and unsigned */
	union { uint8_t u1; uint16_t u2; uint32_t u4; int64_t i8; } n;

	switch (f->size) {
	case 1:
		n.u1 = (uint8_t)value;
		break;
	case 2:
		n.u2 = (uint16_t)value;
		break;
	case 4:
		n.u4 = (uint32_t)value;
		break;
	case 8:
		n.i8 = value;
		break;
	default:
		BUG("a number of another size");
	}
	memcpy(at, &n, f->size);
}

static bool field_fits(const struct field *f, json_int_t n)
{
	json_int_t half = f->size < 8 ? (json_int_t)1 << (8 * f->size - 1) : 0;

	return f->size >= 8 || (f->is_signed ? n >= -half && n < half : n >= 0 && n < 2 * half);
}

static size_t list_length(const struct field *f, const char *it)
{
	return (size_t)member_get(it + f->count, f->count_size ? f->count_size : sizeof(size_t), false);
}

static json_t *write_list(const struct field *f, const char *it)
{
	size_t n = list_length(f, it);
	const char *list;
	json_t *a;

	memcpy(&list, it + f->at, sizeof(list));
	if (f->kind == FIELD_LIST)
		return fields_write_list(f->inner, list, n);
	a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_text(((const char *const *)(const void *)list)[i]));
	return a;
}

static json_t *write_word(const struct field *f, int64_t value)
{
	for (int i = 0; f->words[i]; i++)
		if (i == value)
			return json_string(f->words[i]);
	return NULL;
}

static json_t *write_value(const struct field *f, const char *it)
{
	const char *at = it + f->at, *text;
	uint32_t triple[3];

	switch (f->kind) {
	case FIELD_BOOL:
		return json_boolean(field_number(f, at));
	case FIELD_NUMBER:
		return json_integer(field_number(f, at));
	case FIELD_FLAG:
		return json_boolean(field_number(f, at));
	case FIELD_LIMIT:
		return field_number(f, at) == INT64_MAX ? json_string(UNLIMITED) : json_integer(field_number(f, at));
	case FIELD_TEXT:
	case FIELD_LINE:
		memcpy(&text, at, sizeof(text));
		return json_text(text);
	case FIELD_CHARS:
		return json_text(at);
	case FIELD_WORD:
		return write_word(f, field_number(f, at));
	case FIELD_OBJECT:
		return fields_write(f->inner, at);
	case FIELD_LIST:
	case FIELD_TEXTS:
		return write_list(f, it);
	case FIELD_BYTES:
		return json_bytes((uint64_t)field_number(f, at));
	case FIELD_HEX:
		return json_hex((uint64_t)field_number(f, at));
	case FIELD_TRIPLE:
		memcpy(triple, at, sizeof(triple));
		return json_triple(triple);
	case FIELD_CALL:
		return f->write(at);
	}
	return NULL;
}

static bool field_is_known(const struct field *f, const char *it)
{
	const char *at = it + f->at, *text;

	switch (f->kind) {
	case FIELD_BOOL:
		return field_number(f, at) != 0;
	case FIELD_TEXT:
	case FIELD_LINE:
		memcpy(&text, at, sizeof(text));
		return text != NULL;
	case FIELD_CHARS:
		return at[0] != '\0';
	case FIELD_LIST:
	case FIELD_TEXTS:
		return (int64_t)list_length(f, it) != f->unknown;
	case FIELD_NUMBER:
	case FIELD_FLAG:
	case FIELD_LIMIT:
	case FIELD_WORD:
	case FIELD_BYTES:
	case FIELD_HEX:
		return field_number(f, at) != f->unknown;
	default:
		return true;
	}
}

/* NULL: it is left out. */
static json_t *write_field(const struct field *f, const char *it)
{
	json_t *v = f->when == FIELD_ALWAYS || field_is_known(f, it) ? write_value(f, it) : NULL;

	if (v && f->when == FIELD_LEFT_OUT && json_is_object(v) && json_object_size(v) == 0) {
		json_decref(v);
		v = NULL;
	}
	return v || f->when == FIELD_LEFT_OUT ? v : json_null();
}

void fields_add(const struct fields *fs, const void *it, json_t *object)
{
	for (const struct field *f = fs->field; f->key; f++) {
		json_t *v = write_field(f, it);

		if (v)
			json_object_set_new(object, f->key, v);
	}
}

json_t *fields_write(const struct fields *fs, const void *it)
{
	json_t *o = json_object();

	fields_add(fs, it, o);
	return o;
}

json_t *fields_write_list(const struct fields *fs, const void *list, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, fields_write(fs, (const char *)list + i * fs->size));
	return a;
}

void fields_init(const struct fields *fs, void *it)
{
	memset(it, 0, fs->size);
	for (const struct field *f = fs->field; f->key; f++) {
		char *at = (char *)it + f->at;

		switch (f->kind) {
		case FIELD_NUMBER:
		case FIELD_WORD:
		case FIELD_BYTES:
		case FIELD_HEX:
		case FIELD_FLAG:
		case FIELD_LIMIT:
			field_set(f, at, f->unknown);
			break;
		case FIELD_OBJECT:
			fields_init(f->inner, at);
			break;
		case FIELD_LIST:
		case FIELD_TEXTS:
			if (f->unknown)
				memcpy((char *)it + f->count, &f->unknown, sizeof(f->unknown));
			break;
		default:	/* NULL, "" and false */
			break;
		}
	}
}

static int wrong_type(struct err *e, const char *path, const char *key, const char *wanted)
{
	return err_set(e, -EINVAL, "'%s%s%s' in the bundle should be %s", path, path[0] ? "." : "", key, wanted);
}

static int field_read_number(const struct field *f, const json_t *v, char *at, const char *path, struct err *e)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || !field_fits(f, n))
		return wrong_type(e, path, f->key, "an integer in range");
	field_set(f, at, n);
	return 0;
}

static int field_read_limit(const struct field *f, const json_t *v, char *at, const char *path, struct err *e)
{
	const char *word = json_string_value(v);
	json_int_t n = word && strcmp(word, UNLIMITED) == 0 ? INT64_MAX : json_integer_value(v);

	if ((!json_is_integer(v) && n != INT64_MAX) || n < 0)
		return wrong_type(e, path, f->key, "a non-negative integer, or \"" UNLIMITED "\"");
	field_set(f, at, n);
	return 0;
}

/* It is printed among other lines: nothing in it may break the line or control the terminal. */
static int field_read_line(const struct field *f, const json_t *v, char *at, const char *path, struct pool *pool,
			   struct err *e)
{
	const char *s = json_string_value(v);
	char *line;

	if (!s || strlen(s) > FIELD_LINE_MAX)
		return wrong_type(e, path, f->key, "a string that is not too long");
	line = pool_strdup(pool, s);
	str_make_line(line);
	memcpy(at, &line, sizeof(line));
	return 0;
}

static int find_word(const struct field *f, const char *word)
{
	for (int i = 0; word && f->words[i]; i++)
		if (!strcmp(word, f->words[i]))
			return i;
	return -1;
}

static int field_read_word(const struct field *f, const json_t *v, char *at, const char *path, struct err *e)
{
	int i = find_word(f, json_string_value(v));

	if (i >= 0) {
		field_set(f, at, i);
		return 0;
	}
	return wrong_type(e, path, f->key, "one of the words that docs/develop/bundle.md lists");
}

static int field_read_list(const struct field *f, const json_t *v, char *it, const char *path, struct pool *pool,
			   struct err *e)
{
	size_t n = json_array_size(v), size = f->kind == FIELD_LIST ? f->inner->size : sizeof(char *);
	char inner[160];
	const char *s;
	char *list;

	if (!json_is_array(v) || n > LIST_MAX)
		return wrong_type(e, path, f->key, "a list of at most 65536 elements");
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
			return wrong_type(e, "", inner, "a string");
		s = pool_strdup(pool, json_string_value(o));
		memcpy(list + i * size, &s, sizeof(s));
	}
	memcpy(it + f->at, &list, sizeof(list));
	if (f->count_size && f->count_size != sizeof(n))
		BUG("a list that is read is counted in a size_t");
	memcpy(it + f->count, &n, sizeof(n));
	return 0;
}

static int field_read(const struct field *f, const json_t *v, char *it, const char *path, struct pool *pool,
		      struct err *e)
{
	char inner[160], *at = it + f->at;
	const char *s;

	switch (f->kind) {
	case FIELD_LINE:
		return field_read_line(f, v, at, path, pool, e);
	case FIELD_LIMIT:
		return field_read_limit(f, v, at, path, e);
	case FIELD_BOOL:
	case FIELD_FLAG:
		if (!json_is_boolean(v))
			return wrong_type(e, path, f->key, "true or false");
		field_set(f, at, json_is_true(v));
		return 0;
	case FIELD_TEXT:
		if (!json_is_string(v))
			return wrong_type(e, path, f->key, "a string");
		s = pool_strdup(pool, json_string_value(v));
		memcpy(at, &s, sizeof(s));
		return 0;
	case FIELD_CHARS:
		if (!json_is_string(v) || !str_copy(at, f->size, json_string_value(v)))
			return wrong_type(e, path, f->key, "a string that is not too long");
		return 0;
	case FIELD_OBJECT:
		snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", f->key);
		return fields_read(f->inner, v, at, inner, pool, e);
	case FIELD_LIST:
	case FIELD_TEXTS:
		return field_read_list(f, v, it, path, pool, e);
	case FIELD_WORD:
		return field_read_word(f, v, at, path, e);
	case FIELD_NUMBER:
	case FIELD_BYTES:
		return field_read_number(f, v, at, path, e);
	case FIELD_CALL:
		return f->take && !f->take(at, v) ? wrong_type(e, path, f->key, "something else") : 0;
	default:
		return 0;	/* written, never read */
	}
}

/* A misspelled key would silently be "not known": tell people who write a bundle by hand. */
static int check_keys(const struct fields *fs, const json_t *o, const char *path, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		const struct field *f = fs->field;

		while (f->key && strcmp(f->key, key) != 0)
			f++;
		if (!f->key)
			return err_set(e, -EINVAL, "'%s%s%.60s' in the bundle is not a key that cuwhy knows", path,
				       path[0] ? "." : "", key);
	}
	return 0;
}

int fields_read(const struct fields *fs, const json_t *o, void *it, const char *path, struct pool *pool, struct err *e)
{
	fields_init(fs, it);
	if (!json_is_object(o))
		return wrong_type(e, "", path[0] ? path : "it", "an object");
	if (check_keys(fs, o, path, e))
		return -EINVAL;
	for (const struct field *f = fs->field; f->key; f++) {
		const json_t *v = json_object_get(o, f->key);

		if (v && !json_is_null(v) && field_read(f, v, it, path, pool, e))
			return -EINVAL;
	}
	return fs->check ? fs->check(it, pool, e) : 0;
}

static void field_take(const struct field *f, const json_t *v, char *at)
{
	json_int_t n = json_integer_value(v);

	switch (f->kind) {
	case FIELD_BOOL:
		field_set(f, at, json_is_true(v));
		break;
	case FIELD_NUMBER:
	case FIELD_BYTES:
		if (json_is_integer(v) && field_fits(f, n) && (n >= 0 || f->is_signed))
			field_set(f, at, n);
		break;
	case FIELD_CHARS:
		if (json_is_string(v))
			str_copy(at, f->size, json_string_value(v));
		break;
	case FIELD_WORD:
		if (find_word(f, json_string_value(v)) >= 0)
			field_set(f, at, find_word(f, json_string_value(v)));
		break;
	case FIELD_OBJECT:
		fields_take(f->inner, v, at);
		break;
	case FIELD_CALL:
		if (f->take)
			f->take(at, v);
		break;
	default:
		break;
	}
}

void fields_take(const struct fields *fs, const json_t *o, void *it)
{
	for (const struct field *f = fs->field; f->key; f++)
		field_take(f, json_object_get(o, f->key), (char *)it + f->at);
}

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

		if (f->kind == FIELD_OBJECT)
			fields_read_fitting(f->inner, v, (char *)it + f->at, pool);
		else if (f->kind == FIELD_LIST)
			read_fitting_list(f, v, it, pool);
		else if (v)
			field_read(f, v, it, "", pool, &e);
	}
	if (fs->check)
		fs->check(it, pool, &e);
}
