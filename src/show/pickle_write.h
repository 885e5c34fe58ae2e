/* SPDX-License-Identifier: Apache-2.0
 * Writes a Python pickle (protocol 4) of plain values: dictionaries, lists, tuples, numbers and texts.
 *
 * Equal texts are written once and referred to after that; so are lists and dictionaries that have a key.
 */
#ifndef CUWHY_PICKLE_WRITE_H
#define CUWHY_PICKLE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/pool.h"

struct pickle_memo;

struct pickle {
	struct buf out;			/* `full` when it is longer than `max` */
	struct pickle_memo *memo;	/* in the order of the pickle's own memo */
	size_t n_memo, cap_memo;
	struct map map;			/* of `memo` */
	struct pool texts;		/* those that `memo` compares with */
};

/* Two numbers that name an object; no two objects of one pickle may have the same. */
struct pickle_key { uint64_t a, b; };

void pickle_begin(struct pickle *p, size_t max);
void pickle_end(struct pickle *p);	/* then `out` is complete */
void pickle_release(struct pickle *p);

void pickle_int(struct pickle *p, int64_t n);
void pickle_uint(struct pickle *p, uint64_t n);
void pickle_bool(struct pickle *p, bool yes);
void pickle_float(struct pickle *p, double x);

/* Any bytes: those that are not UTF-8 become '?'. */
void pickle_text(struct pickle *p, const char *text);

/* Between a begin and its end: items of a list, or key, value, key, value of a dictionary. */
void pickle_list(struct pickle *p);
void pickle_list_end(struct pickle *p);
void pickle_list_item(struct pickle *p, size_t i);	/* before item i of a list that may be long */
void pickle_dict(struct pickle *p);
void pickle_dict_end(struct pickle *p);

/* After two values: both become one tuple. */
void pickle_pair_end(struct pickle *p);

/* Likewise with a key: false if the object was written before; then a reference has been written and it is done. */
bool pickle_shared_list(struct pickle *p, struct pickle_key key);
bool pickle_shared_dict(struct pickle *p, struct pickle_key key);

#endif
