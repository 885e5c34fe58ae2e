/* SPDX-License-Identifier: Apache-2.0
 * Plain structs as JSON and back, by one table per struct. What is not known is left out, and a key that is missing reads
 * as not known; a value of the wrong type is refused, with the path of its key, or (fields_read_fitting) not known either.
 */
#ifndef CUWHY_FIELDS_H
#define CUWHY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/pool.h"

struct err;
struct fields;

enum field_kind {
	FIELD_BOOL,		/* bool: left out when false */
	FIELD_NUMBER,		/* an integer of 4 or 8 bytes; `unknown` is left out */
	FIELD_TEXT,		/* const char *: NULL is left out */
	FIELD_CHARS,		/* char[]: "" is left out */
	FIELD_WORD,		/* an enum of 4 bytes, by its name in `words`; `unknown` is left out */
	FIELD_OBJECT,		/* a struct inside this one */
	FIELD_LIST,		/* a pointer to structs, and their number at `count` */
	FIELD_TEXTS,		/* a pointer to texts, and their number at `count` */
	FIELD_FLAG,		/* int: 1 or 0 as true or false; -1 is left out */
	FIELD_LIMIT,		/* int64_t: -1 is left out, INT64_MAX is "unlimited" */
	FIELD_LINE,		/* const char *: read as one line of at most FIELD_LINE_MAX bytes; NULL is left out */
	FIELD_GROUP,		/* a struct inside this one, there even when nothing in it is known */
};

#define FIELD_LINE_MAX	512

struct field {
	const char *key;
	enum field_kind kind;
	size_t at, size;	/* in the struct */
	size_t count;		/* where the number of a list is (size_t, or ptrdiff_t) */
	int64_t unknown;	/* of a list: the number that is left out */
	bool is_signed;
	const struct fields *inner;
	const char *const *words;	/* ends with NULL */
};

struct fields {
	const struct field *field;	/* ends with a key of NULL */
	size_t size;			/* of the struct */
	/* Completes a struct that was read, or refuses it; may be NULL. */
	int (*check)(void *it, struct pool *pool, struct err *e);
};

#define FIELD_PLACE(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#define F_BOOL(type, member) {#member, FIELD_BOOL, FIELD_PLACE(type, member), 0, 0, false, NULL, NULL}
#define F_NUMBER(type, member, unknown) \
	{#member, FIELD_NUMBER, FIELD_PLACE(type, member), 0, (int64_t)(unknown), (__typeof__(((type *)0)->member))-1 < 1, NULL, NULL}
#define F_TEXT(type, member) {#member, FIELD_TEXT, FIELD_PLACE(type, member), 0, 0, false, NULL, NULL}
#define F_CHARS(type, member) {#member, FIELD_CHARS, FIELD_PLACE(type, member), 0, 0, false, NULL, NULL}
#define F_WORD(type, member, words, unknown) {#member, FIELD_WORD, FIELD_PLACE(type, member), 0, unknown, true, NULL, words}
#define F_OBJECT(type, member, inner) {#member, FIELD_OBJECT, FIELD_PLACE(type, member), 0, 0, false, &(inner), NULL}
#define F_LIST(type, key, member, n, inner) \
	{key, FIELD_LIST, FIELD_PLACE(type, member), offsetof(type, n), 0, false, &(inner), NULL}
#define F_TEXTS(type, key, member, n) {key, FIELD_TEXTS, FIELD_PLACE(type, member), offsetof(type, n), 0, false, NULL, NULL}
#define F_FLAG(type, member) {#member, FIELD_FLAG, FIELD_PLACE(type, member), 0, -1, true, NULL, NULL}
#define F_LIMIT(type, member) {#member, FIELD_LIMIT, FIELD_PLACE(type, member), 0, -1, true, NULL, NULL}
#define F_LINE(type, member) {#member, FIELD_LINE, FIELD_PLACE(type, member), 0, 0, false, NULL, NULL}
#define F_GROUP(type, member, inner) {#member, FIELD_GROUP, FIELD_PLACE(type, member), 0, 0, false, &(inner), NULL}
/* Its number is a ptrdiff_t: -1 is not known, and an empty list is there. */
#define F_KNOWN_LIST(type, key, member, n, inner) \
	{key, FIELD_LIST, FIELD_PLACE(type, member), offsetof(type, n), -1, false, &(inner), NULL}
#define F_END {NULL, FIELD_BOOL, 0, 0, 0, 0, false, NULL, NULL}

json_t *fields_write(const struct fields *f, const void *it);

/* Everything unknown. */
void fields_init(const struct fields *f, void *it);

/* Fills `it`; texts and lists are the pool's. `path` names the object in messages. -EINVAL with `e` filled. */
int fields_read(const struct fields *f, const json_t *o, void *it, const char *path, struct pool *pool, struct err *e);

/* The same for what others wrote: takes what fits. Whatever does not is not known, and keys that the table has not are left
 * alone. */
void fields_read_fitting(const struct fields *f, const json_t *o, void *it, struct pool *pool);

#endif
