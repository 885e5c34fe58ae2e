/* SPDX-License-Identifier: Apache-2.0
 * Which logs are of different runs (see log.h).
 */

#include "find/words/log.h"

/* The ranks of one run write until the last of them gives up: a collective may wait half an hour for a rank that is gone. */
#define APART_SECONDS 3600

/* The earliest input that fails and has no run yet; `n` = none. */
static size_t next_file(const struct text_file *f, size_t n, const int *run)
{
	size_t best = n;

	for (size_t i = 0; i < n; i++)
		if (run[i] == RUN_ANY && f[i].failed && f[i].first && (best == n || f[i].first < f[best].first))
			best = i;
	return best;
}

size_t log_runs(const struct text_log *l, int *run)
{
	const struct text_file *f;
	size_t n = log_files(l, &f), runs = 0, at;
	double end = 0;

	for (size_t i = 0; i < n; i++)
		run[i] = RUN_ANY;
	while ((at = next_file(f, n, run)) < n) {
		if (!runs || f[at].first > end + APART_SECONDS)
			runs++;
		run[at] = (int)runs - 1;
		end = f[at].last > end ? f[at].last : end;
	}
	return runs;
}
