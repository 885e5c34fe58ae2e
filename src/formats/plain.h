/* SPDX-License-Identifier: Apache-2.0
 * Plain data, whatever it was written as: numbers, texts, lists and dictionaries from a pickle or from JSON.
 *
 * A pickle is read by our own machine, which knows only the opcodes of plain data: nothing is ever executed, and an opcode that could
 * is refused. Values may be shared, and a hostile file can make a list contain itself: readers descend as deep as their format is,
 * never to the end.
 */
#ifndef CUWHY_PLAIN_H
#define CUWHY_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct err;

enum plain_kind { PLAIN_NONE, PLAIN_BOOL, PLAIN_INT, PLAIN_REAL, PLAIN_TEXT, PLAIN_LIST, PLAIN_DICT };

struct plain {
	enum plain_kind kind;
	int64_t number;			/* BOOL, INT */
	double real;
	const char *text;		/* without bytes of 0: cut there */
	struct plain **item;		/* LIST; DICT: key, value, key, value */
	size_t n, room;
};

#define PLAIN_VALUES_MAX (4u << 20)

/* NULL with the reason in `e`. All of it is the pool's. */
struct plain *plain_from_pickle(const unsigned char *bytes, size_t n, struct pool *pool, struct err *e);
struct plain *plain_from_json(const char *text, size_t n, struct pool *pool, struct err *e);

/* The value of a key; NULL = `p` is NULL or no dictionary, or has no such key. */
const struct plain *plain_get(const struct plain *p, const char *key);
const struct plain *plain_at(const struct plain *p, size_t i);	/* of a list; NULL = there is none */
const char *plain_text(const struct plain *p);			/* NULL = it is none */
bool plain_number(const struct plain *p, int64_t *to);
bool plain_true(const struct plain *p);

#endif
