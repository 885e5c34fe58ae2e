/* SPDX-License-Identifier: Apache-2.0
 * The values behind a fault: what the failing threads of a kernel checked, or computed their address from, and where it is in
 * memory. The threads are executed again (see sass_run.h).
 */
#ifndef CUWHY_VALUES_H
#define CUWHY_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "find/fault/sass_run.h"

#define VALUES_MAX 16 /* kept; all are counted */

struct checked {
	uint64_t at;	/* where it is in global memory */
	unsigned n;	/* bytes of it that the code used: 1, 2, 4 or 8 */
	uint64_t base;	/* the pointer among the kernel's parameters that `at` was computed from, 0 = not known */
	uint8_t raw[8]; /* from `at` on; n_raw of them are known */
	unsigned n_raw;
	bool compared; /* with something: its kind is known then */
	struct sass_compare compare;
};

/* Why there are no values. */
enum values_answer {
	VALUES_NONE, /* not tried, or the condition does not depend on memory */
	VALUES_FOUND,
	VALUES_PLACES, /* only where they are: the dump has no memory */
	VALUES_UNREAD, /* the dump has no memory, and which value it is depends on others */
	VALUES_LOST,   /* the code cannot be followed */
};

struct values {
	enum values_answer answer;
	struct checked value[VALUES_MAX];
	size_t n_kept, n_found; /* different ones; of how many threads */
	size_t n_threads;	/* that were tried */
	size_t n_left;		/* of them, those that ended without getting there: with this memory they do not fail */
	bool pointer_known;	/* of an access: the pointer that it was computed from is; */
	unsigned pointer;	/* it is at this byte of the parameters */
	uint64_t lost_at;
};

struct values_thread {
	uint32_t block[3], thread[3];
	uint64_t address; /* that it accessed, 0 = not known */
};

/* Runs these threads to `pc`: `t` has everything but the thread. */
void values_find(struct values *v, const struct sass_thread *t, uint64_t pc, bool access,
		 const struct values_thread *threads, size_t n);

/* Numbers as they are in memory. Integers: of one byte without a sign, else signed. */
int64_t checked_integer(const uint8_t *raw, unsigned n);
/* Floating point; of two bytes it is what the kernel compared: half precision or bfloat16. False if that is not known. */
bool checked_real(const struct checked *v, double *number);

#endif
