/* SPDX-License-Identifier: Apache-2.0
 * JSON by table, not by hand. There are two kinds of table.
 *
 * `struct fields` describes a struct once, for both directions: it is for JSON that has the shape of the struct. By default a
 * row is always written; F_OR_NULL writes null for a value that is not known, and F_IF_KNOWN omits the key.
 *
 * JSON_OF() makes an object from keys and values that are computed on the spot. Each row names the type of its value, so
 * that a number cannot be taken for another type, and each key is next to its value.
 *
 * Keys are written in the order of the rows. JSON must be UTF-8, but texts need not be: invalid bytes become '?'.
 */
#ifndef CUWHY_JSON_H
#define CUWHY_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/pool.h"

struct err;
struct field;
struct fields;

/* Never NULL; NULL gives JSON null. */
json_t *json_text(const char *s);

/* A number of bytes; null if JSON cannot hold it or if it means "not known". */
json_t *json_bytes(uint64_t n);

json_t *json_hex(uint64_t n);			/* "0x7f00" */
json_t *json_triple(const uint32_t n[3]);	/* [1, 2, 3] */

/* Appends a text to a list. */
void json_append_text(json_t *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A JSON file that anybody may have written, under the rules of fs_open_foreign: at most `max` bytes and JSON_VALUES_MAX values, for a
 * value takes up to a hundred times the memory of its text. NULL with the reason in `e`. */
#define JSON_VALUES_MAX	1000000
json_t *json_read(const char *path, size_t max, struct err *e);

/* Every text in an object or list becomes what `change` makes of it, which frees the old one; keys stay. */
void json_change_texts(json_t *o, char *(*change)(char *text, void *arg), void *arg);

/* As json_dumpf, but characters that are not harmless on a terminal (str_harmless) are escaped. 0, or -1. */
int json_write(FILE *out, const json_t *o, size_t flags);

/* The same into memory, owned by the caller. Files are printed on terminals as well. NULL: it cannot be written. */
char *json_string_of(const json_t *o, size_t flags);

/* Prints the value on its own line, without secrets (private.h), and takes ownership. */
void json_print(FILE *out, json_t *o);

struct json_row {
	const char *key;	/* NULL ends the table */
	enum { ROW_LEFT_OUT, ROW_NULL, ROW_BOOL, ROW_INT, ROW_BYTES, ROW_HEX, ROW_TEXT, ROW_VALUE, ROW_SHARED } kind;
	union {
		json_int_t number;
		uint64_t bytes;
		const char *text;
		json_t *value;
	};
};

#define J_NULL(k)		((struct json_row){.key = (k), .kind = ROW_NULL})
#define J_BOOL(k, v)		((struct json_row){.key = (k), .kind = ROW_BOOL, .number = (v) ? 1 : 0})
#define J_INT(k, v)		((struct json_row){.key = (k), .kind = ROW_INT, .number = (json_int_t)(v)})
#define J_BYTES(k, v)		((struct json_row){.key = (k), .kind = ROW_BYTES, .bytes = (v)})	/* as json_bytes */
#define J_HEX(k, v)		((struct json_row){.key = (k), .kind = ROW_HEX, .bytes = (v)})
#define J_TEXT(k, v)		((struct json_row){.key = (k), .kind = ROW_TEXT, .text = (v)})		/* NULL is null */
#define J_VALUE(k, v)		((struct json_row){.key = (k), .kind = ROW_VALUE, .value = (v)})	/* takes ownership; NULL is omitted */
#define J_SHARED(k, v)		((struct json_row){.key = (k), .kind = ROW_SHARED, .value = (v)})	/* the caller keeps it */
#define J_INT_OR_NULL(k, known, v) ((known) ? J_INT(k, v) : J_NULL(k))

/* Left out, and not even computed, unless `given`. */
#define J_IF(given, row)	((given) ? (row) : (struct json_row){.key = "", .kind = ROW_LEFT_OUT})

/* C does not define the order in which the values are computed: if the order matters, compute them before. */
#define JSON_OF(...)		json_rows_new((const struct json_row[]){__VA_ARGS__, {.key = NULL}})
#define JSON_ADD(object, ...)	json_rows_add(object, (const struct json_row[]){__VA_ARGS__, {.key = NULL}})

json_t *json_rows_new(const struct json_row *rows);
void json_rows_add(json_t *object, const struct json_row *rows);

enum field_kind {
	FIELD_BOOL,		/* bool, or any integer; false is the value that is not known */
	FIELD_NUMBER,		/* any integer; `unknown` is the value that is not known */
	FIELD_TEXT,		/* const char *: NULL is not known */
	FIELD_CHARS,		/* char[]: "" is not known */
	FIELD_WORD,		/* an enum, by its name in `words`; `unknown` is not known */
	FIELD_OBJECT,		/* a struct inside this one; not known when nothing in it is */
	FIELD_LIST,		/* a pointer to structs, and their number at `count`; not known if that is `unknown`, mostly 0 */
	FIELD_TEXTS,		/* a pointer to texts, likewise */
	FIELD_BYTES,		/* uint64_t, as json_bytes */
	FIELD_HEX,		/* uint64_t, as json_hex */
	FIELD_TRIPLE,		/* uint32_t[3] */
	FIELD_FLAG,		/* int: 1 or 0 as true or false; -1 is not known */
	FIELD_LIMIT,		/* int64_t: -1 is not known, INT64_MAX is "unlimited" */
	FIELD_LINE,		/* const char *: read as one line of at most FIELD_LINE_MAX bytes; NULL is not known */
	FIELD_CALL,		/* what no other kind can do: see F_BY */
};

#define FIELD_LINE_MAX	512

enum field_when {
	FIELD_LEFT_OUT,		/* when it is not known */
	FIELD_NULL,		/* null when it is not known */
	FIELD_ALWAYS,		/* whatever it is */
};

struct field {
	const char *key;
	enum field_kind kind;
	size_t at, size;	/* in the struct */
	size_t count;		/* where the number of a list is */
	int64_t unknown;
	bool is_signed;
	const struct fields *inner;
	const char *const *words;	/* ends with NULL */
	enum field_when when;
	size_t count_size;	/* of the number of a list; 0 = size_t */
	/* Both get the member. NULL: it is not known. False: it is not what it should be. */
	json_t *(*write)(const void *member);
	bool (*take)(void *member, const json_t *value);
};

struct fields {
	const struct field *field;	/* ends with a key of NULL */
	size_t size;			/* of the struct */
	/* Completes a struct that was read, or refuses it; may be NULL. */
	int (*check)(void *it, struct pool *pool, struct err *e);
};

#define F_SIGNED(type, member) \
	_Generic(((type *)0)->member, signed char: true, short: true, int: true, long: true, long long: true, default: false)
#define F_ROW(k, kind_, type, member, ...) \
	{.key = k, .kind = kind_, .at = offsetof(type, member), .size = sizeof(((type *)0)->member), __VA_ARGS__}

/* F_ALWAYS(NUMBER, "pid", struct process, pid). The last argument of the other two is the value that is not known, where the kind
 * has none of its own: F_OR_NULL(NUMBER, "rank", struct process, rank, UINT32_MAX). */
#define F_ALWAYS(kind, k, type, member) \
	F_ROW(k, FIELD_##kind, type, member, .is_signed = F_SIGNED(type, member), .when = FIELD_ALWAYS)
#define F_OR_NULL(kind, k, type, member, ...) \
	F_ROW(k, FIELD_##kind, type, member, .is_signed = F_SIGNED(type, member), .when = FIELD_NULL, \
	      .unknown = (int64_t)(__VA_ARGS__ + 0))
#define F_IF_KNOWN(kind, k, type, member, ...) \
	F_ROW(k, FIELD_##kind, type, member, .is_signed = F_SIGNED(type, member), .when = FIELD_LEFT_OUT, \
	      .unknown = (int64_t)(__VA_ARGS__ + 0))

/* The number of a list may be of any integer type. */
#define F_LIST_OF(k, type, member, n, inner_) \
	F_ROW(k, FIELD_LIST, type, member, .count = offsetof(type, n), .count_size = sizeof(((type *)0)->n), \
	      .inner = &(inner_), .when = FIELD_ALWAYS)

/* With its own functions; `take` may be NULL, then it is never read. F_MADE is computed from the whole struct. */
#define F_BY(k, type, member, write_, take_) \
	F_ROW(k, FIELD_CALL, type, member, .write = write_, .take = take_, .when = FIELD_NULL)
#define F_MADE(k, write_) {.key = k, .kind = FIELD_CALL, .write = write_, .when = FIELD_NULL}

/* Short forms, for keys named like the member: omitted if not known. */
#define F_BOOL(type, member) F_IF_KNOWN(BOOL, #member, type, member)
#define F_NUMBER(type, member, unknown) F_IF_KNOWN(NUMBER, #member, type, member, unknown)
#define F_TEXT(type, member) F_IF_KNOWN(TEXT, #member, type, member)
#define F_CHARS(type, member) F_IF_KNOWN(CHARS, #member, type, member)
#define F_WORD(type, member, words_, unknown_) \
	F_ROW(#member, FIELD_WORD, type, member, .unknown = unknown_, .is_signed = true, .words = words_)
#define F_OBJECT(type, member, inner_) F_ROW(#member, FIELD_OBJECT, type, member, .inner = &(inner_))
#define F_LIST(type, key, member, n, inner_) \
	F_ROW(key, FIELD_LIST, type, member, .count = offsetof(type, n), .inner = &(inner_))
#define F_TEXTS(type, key, member, n) F_ROW(key, FIELD_TEXTS, type, member, .count = offsetof(type, n))
#define F_FLAG(type, member) F_ROW(#member, FIELD_FLAG, type, member, .is_signed = true, .unknown = -1)
#define F_LIMIT(type, member) F_ROW(#member, FIELD_LIMIT, type, member, .is_signed = true, .unknown = -1)
#define F_LINE(type, member) F_IF_KNOWN(LINE, #member, type, member)
/* Written even if nothing in it is known. */
#define F_GROUP(type, member, inner_) \
	F_ROW(#member, FIELD_OBJECT, type, member, .inner = &(inner_), .when = FIELD_ALWAYS)
/* Its number is a ptrdiff_t: -1 is not known, and an empty list is written. */
#define F_KNOWN_LIST(type, key, member, n, inner_) \
	F_ROW(key, FIELD_LIST, type, member, .count = offsetof(type, n), .inner = &(inner_), .unknown = -1)
#define F_END {.key = NULL}

json_t *fields_write(const struct fields *f, const void *it);
json_t *fields_write_list(const struct fields *f, const void *list, size_t n);

/* Adds them to an existing object. */
void fields_add(const struct fields *f, const void *it, json_t *object);

/* Everything unknown. */
void fields_init(const struct fields *f, void *it);

/* Fills `it`; texts and lists are the pool's. `path` names the object in messages: a value of the wrong type is refused, and so
 * is a key that is not in the table. -EINVAL with `e` filled. */
int fields_read(const struct fields *f, const json_t *o, void *it, const char *path, struct pool *pool, struct err *e);

/* The same for what others wrote: takes what fits. What does not fit is not known, and keys that are not in the table are
 * ignored. */
void fields_read_fitting(const struct fields *f, const json_t *o, void *it, struct pool *pool);

/* Takes what it can: members that are missing or wrong keep their value, a text that is too long is cut. Pointers are left
 * alone: texts and lists are not read. */
void fields_take(const struct fields *f, const json_t *o, void *it);

#endif
