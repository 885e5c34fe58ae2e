/* SPDX-License-Identifier: Apache-2.0
 * The statements of a Python file: enough of its grammar to follow a value from name to name (flow.h).
 */
#ifndef CUWHY_STATEMENTS_H
#define CUWHY_STATEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct statement {
	uint32_t line, last;		/* its first and last line */
	uint32_t indent;		/* bytes */
	int function;			/* the def that it is in, by index; -1: none */
	int around;			/* the statement whose block it is in, -1: none */
	const char *raw;		/* its text in one line, without comments */
	const char *text;		/* as long as `raw`, but what strings contain is blank */
	bool alone;			/* one line, with nothing else in it, and no block on the same line */
};

struct function {
	const char *name;
	int def;			/* its statement */
	int around;			/* the def around it, -1: none */
};

struct code {
	const char *file;
	struct statement *statement;
	struct function *function;
	int n, n_functions;
};

/* False: it is not as Python expects it. */
bool code_read(struct code *c, const char *file, const char *text, size_t len, struct pool *pool);

/* The statement that has this line; -1: none. */
int code_at(const struct code *c, uint32_t line);

/* Is statement `i` in the block of statement `around`, or in one inside of it? */
bool code_within(const struct code *c, int i, int around);

/* The innermost for or while in the same function around a statement; -1: none. */
int code_loop(const struct code *c, int i);

/* The first word is this one. */
bool code_begins(const struct statement *s, const char *word);

#endif
