/* SPDX-License-Identifier: Apache-2.0
 * A device's memory over the whole run, by what it was for: one column per epoch of the recording, and one
 * from the ledger of the moment that counts.
 */
#ifndef CUWHY_OVER_TIME_H
#define CUWHY_OVER_TIME_H

#include "case/ledger.h"

struct cw_sample;

struct over_column {
	uint64_t begin;			/* ticks: it counts until the next one begins */
	uint64_t at;			/* the moment of its figures, when the most was held */
	uint64_t kind[KIND_COUNT];	/* tensors; with `untold` they add up to what PyTorch had allocated */
	uint64_t untold;		/* tensors of sites that have no history */
	uint64_t cache, libraries;	/* PyTorch's cache; other allocations of this process */
	bool ledger;			/* from the ledger */
};

struct over_time {
	struct over_column *column;	/* oldest first */
	size_t n;			/* 0 = nothing was kept: an older recording, or the table was full */
	uint64_t lost;			/* how often a site had no room for its history */
};

/* Kinds are decided as the ledger decides them; the ledger's column is of the moment when memory ran out, else of the
 * end. `l` may be a ledger of the device that the caller already has, or NULL. Everything lives in the pool. */
void over_time_build(struct over_time *o, struct trace *t, int device, const struct ledger *l, struct pool *pool);

/* The timeline in at most so many samples, each with the most of those that it stands for. It lives in the pool. */
struct cw_sample *over_time_samples(struct trace *t, int device, size_t most, size_t *n, struct pool *pool);

#endif
