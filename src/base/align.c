/* SPDX-License-Identifier: Apache-2.0
 * Aligns two lists by a greedy search (Myers 1986): with 0, 1, 2, … elements left out, how far does one get?
 *
 * A diagonal is how many more elements of the first list were left out than of the second. The time is that of the lists times
 * what is left out, so after PART elements the way that got furthest is taken, and the search begins again from there.
 */
#include "base/align.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PART 256
#define MID  (PART + 1)			/* the index of diagonal 0 */

struct alignment {
	size_t *match;
	size_t n, m;
	align_same *same;
	const void *of;
	size_t i, k;			/* where this part begins */
	int64_t (*far)[2 * MID + 1];	/* with so many left out, by diagonal: elements of the first list */
};

/* The diagonal on which the last element was left out. */
static int came_from(const int64_t *before, int out, int diagonal)
{
	bool second = diagonal == -out || (diagonal != out && before[MID + diagonal - 1] < before[MID + diagonal + 1]);

	return second ? diagonal + 1 : diagonal - 1;
}

static int64_t starts_at(const struct alignment *a, int out, int diagonal)
{
	const int64_t *before;
	int from;

	if (!out)
		return 0;
	before = a->far[out - 1];
	from = came_from(before, out, diagonal);
	return before[MID + from] + (from < diagonal);
}

static int64_t walk(const struct alignment *a, int64_t at, int diagonal)
{
	int64_t first = (int64_t)(a->n - a->i), second = (int64_t)(a->m - a->k);

	while (at < first && at - diagonal < second &&
	       a->same(a->of, a->i + (size_t)at, a->k + (size_t)(at - diagonal)))
		at++;
	return at;
}

/* Back along the way that ended there. */
static void keep_way(struct alignment *a, int out, int diagonal)
{
	for (; out >= 0; out--) {
		int64_t at = a->far[out][MID + diagonal], start = starts_at(a, out, diagonal);

		while (at > start) {
			at--;
			a->match[a->i + (size_t)at] = a->k + (size_t)(at - diagonal) + 1;
		}
		if (out)
			diagonal = came_from(a->far[out - 1], out, diagonal);
	}
}

/* The furthest that was reached within the lists, as a sum of both; -1: nothing of this diagonal is. */
static int64_t reached(const struct alignment *a, int out, int diagonal)
{
	int64_t at = a->far[out][MID + diagonal], other = at - diagonal;

	return at < 0 || at > (int64_t)(a->n - a->i) || other < 0 || other > (int64_t)(a->m - a->k) ? -1 : at + other;
}

static void align_part(struct alignment *a)
{
	int64_t all = (int64_t)(a->n - a->i + a->m - a->k), best = -1, sum;
	int out = -1, way = 0;

	while (best < all && out < PART) {
		best = -1;
		out++;
		for (int d = -out; d <= out; d += 2) {
			a->far[out][MID + d] = walk(a, starts_at(a, out, d), d);
			sum = reached(a, out, d);
			if (sum > best) {
				best = sum;
				way = d;
			}
		}
	}
	keep_way(a, out, way);
	sum = a->far[out][MID + way];
	a->i += (size_t)sum;
	a->k += (size_t)(sum - way);
}

void align(size_t *match, size_t n, size_t m, align_same *same, const void *of)
{
	struct alignment a = {.match = match, .n = n, .m = m, .same = same, .of = of};

	memset(match, 0, n * sizeof(*match));
	a.far = xcalloc(PART + 1, sizeof(*a.far));
	while (a.i < n && a.k < m)
		align_part(&a);
	free(a.far);
}
