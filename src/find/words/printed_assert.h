/* SPDX-License-Identifier: Apache-2.0
 * Lines that failing kernels print, one per thread:
 * "file:line: function: block: [b,0,0], thread: [t,0,0] Assertion `condition` failed."
 */
#ifndef CUWHY_TEXT_PRINTED_ASSERT_H
#define CUWHY_TEXT_PRINTED_ASSERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "read/text/line.h"

#define PRINTED_ASSERTS_MAX	16

struct text_assert {
	const char *condition, *file, *function;
	uint64_t order;		/* of its first line */
	uint32_t source_line;
	const char *thread;	/* "block: [3,0,0], thread: [900,0,0]" of the first */
	uint64_t line, count;
	int rank;
};

struct printed_asserts {	/* each once, in the order they came */
	struct text_assert list[PRINTED_ASSERTS_MAX];
	size_t n;
	size_t from;		/* those before it are of an earlier run: the same one is another */
};

/* Takes the line if it is one of these; false otherwise. */
bool printed_asserts_line(struct printed_asserts *all, struct pool *pool, const struct text_line *line);

#endif
