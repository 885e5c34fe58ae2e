/* SPDX-License-Identifier: Apache-2.0
 * What the driver and the kernels printed while a program was recorded.
 */
#ifndef CUWHY_PRINTED_LINES_H
#define CUWHY_PRINTED_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "cuwhy/format.h"

struct pool;
struct trace;

struct printed_line {
	const char *text;	/* one line; of those that differ only in block and thread, the first */
	uint64_t count, ticks;
	uint32_t stream;	/* 1 standard output, 2 standard error */
	bool assertion;		/* of a failed one: `block` and `thread` are the first that failed */
	uint32_t block[3], thread[3];
};

#define PRINTED_MAX (2 * CW_PRINTED_LINES + 2)

/* In the order in which they came. */
size_t trace_printed(const struct trace *t, struct printed_line list[PRINTED_MAX], struct pool *pool);

/* False: what was printed is not known, be it an old recording or a driver whose calls could not be watched. */
bool trace_has_printed(const struct trace *t);

#endif
