/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory A B`: a device's memory at two moments, of two recordings or of one: which lines hold more, what is new.
 */
#ifndef CUWHY_WRITE_MEMORY_DIFF_H
#define CUWHY_WRITE_MEMORY_DIFF_H

#include "show/report_ledger.h"

/* One of the two. */
struct memory_side {
	const char *path;
	const char *when;		/* the moment, in words */
	const struct ledger *ledger;	/* all of its lines; NULL = the device was not used */
	uint32_t pid, rank;		/* 0; CW_UNKNOWN = not known */
	bool no_kinds;			/* what tensors are for is not known: a snapshot */
};

struct memory_change {
	const char *name;		/* as it is shown */
	const struct ledger_line *line;	/* after, else before; by line only, else NULL */
	uint32_t was_line;		/* the line's number before, if it has moved; 0 = it has not */
	bool is_new, is_gone;
	uint64_t before, after;		/* bytes */
	uint64_t count_before, count_after;
};

struct memory_diff {
	struct memory_side before, after;
	int device;
	enum ledger_by by;
	struct memory_change *row;	/* what grew most first, what shrank most last; what did not change is left out */
	size_t n;
	uint64_t held_before, held_after;	/* tensors and other allocations of the process: what has lines */
};

/* Everything lives in the pool, and as long as both ledgers. */
void memory_diff_make(struct memory_diff *d, const struct memory_side *before, const struct memory_side *after,
		      enum ledger_by by, struct pool *pool);

/* How much may be added: a number of bytes, or a share of what was held before. */
struct growth_limit {
	bool given, percent;
	double value;
};

bool memory_diff_exceeds(const struct memory_diff *d, const struct growth_limit *limit);

/* Was this part of the card measured there? What was not, or was not there before CUDA started, has not grown. */
bool memory_part_known(const struct memory_side *s, enum ledger_part part);

/* "NVIDIA H200", or if they differ "NVIDIA A100 before, NVIDIA H200 after"; "" = not known. */
const char *memory_diff_gpus(const struct memory_diff *d, struct pool *pool);

/* At most `top` lines of each kind. */
void memory_diff_print(FILE *out, const struct memory_diff *d, size_t top);
json_t *memory_diff_json(const struct memory_diff *d);

/* All of them as one HTML page, without scripts. */
void memory_diff_page(FILE *out, const struct memory_diff *list, size_t n);

#endif
