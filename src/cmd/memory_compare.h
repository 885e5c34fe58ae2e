/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory A B`, and two moments of one recording.
 */
#ifndef CUWHY_MEMORY_COMPARE_H
#define CUWHY_MEMORY_COMPARE_H

#include "cmd/memory_moment.h"
#include "show/memory_diff.h"

struct compare_asked {
	const char *path[2];		/* recordings or snapshots; may be the same one */
	struct memory_when when[2];
	const char *at[2];		/* as typed; NULL = not given */
	enum ledger_by by;
	size_t top;
	struct growth_limit limit;
	const char *page;		/* also write it there, as HTML; NULL = do not */
	bool json;
};

/* "peak,end" or "10s,60s" give two moments, "end" gives the same one twice. */
int compare_parse_moments(struct compare_asked *a, const char *text, struct pool *pool, struct err *e);

/* "100MiB" or "5%". */
int compare_parse_limit(struct growth_limit *l, const char *text, struct err *e);

/* Prints, and returns the exit status: 1 if more was added than the limit allows. */
int memory_compare(const struct compare_asked *a);

#endif
