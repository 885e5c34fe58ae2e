/* SPDX-License-Identifier: Apache-2.0
 * Opens dumps that tests make, and finds their culprits.
 */
#ifndef CUWHY_TEST_DUMP_FIND_H
#define CUWHY_TEST_DUMP_FIND_H

#include <stdlib.h>
#include <string.h>

#include "find/fault/culprit.h"
#include "dump_make.h"

/* The bytes stay with the maker. */
static inline struct dump *dump_open_made(const struct dump_make *m, struct err *e)
{
	uint8_t *copy = malloc(m->len);

	memcpy(copy, m->data, m->len);
	return dump_from_bytes(copy, m->len, e);
}

/* The culprit of a made dump; both are freed by dump_found(). */
struct found {
	struct dump *d;
	struct culprit *c;
};

static inline struct found dump_find(const struct dump_plan *p)
{
	struct found f;
	struct dump_make m;

	dump_make_usual(&m, p);
	f.d = dump_open_made(&m, NULL);
	assert_non_null(f.d);
	f.c = culprit_find(f.d);
	free(m.data);
	return f;
}

static inline void dump_found(struct found *f)
{
	culprit_free(f->c);
	dump_free(f->d);
}

#endif
