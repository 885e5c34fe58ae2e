/* SPDX-License-Identifier: Apache-2.0
 * The assertion that the driver printed, and which kernels can have failed it: the line names the source file and the function.
 */
#ifndef CUWHY_ASSERTING_H
#define CUWHY_ASSERTING_H

#include <stdbool.h>
#include <stdint.h>

struct cw_launch;
struct incident;
struct pool;
struct text_assert;
struct trace;

struct asserting {
	const struct text_assert *line;	/* NULL: none was printed */
	const char *function;	/* without namespaces and parameters; "" = it says nothing: a lambda's operator() */
	uint64_t count;		/* threads that failed it, or another one of the same words */
	uint32_t block[3], thread[3];	/* the first of them */
};

/* The first one that was printed, if the incident is a failed assertion's. */
void asserting_find(struct asserting *a, const struct incident *i, const struct trace *t, struct pool *pool);

/* How well a kernel fits it. */
enum fits {
	FITS_NOT,		/* it is compiled from another file */
	FITS_PERHAPS,		/* its name does not say */
	FITS_FILE,
	FITS_FUNCTION,
};
enum fits asserting_fits(const struct asserting *a, struct trace *t, const struct cw_launch *l, struct pool *pool);

#endif
