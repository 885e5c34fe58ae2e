/* SPDX-License-Identifier: Apache-2.0
 * The first NaN or infinity that a program read (see not_finite.h).
 *
 * The recorder keeps bytes that may be one. The kernel that was last given their address says of which type they are; where it does not, those
 * count that are no plausible integer.
 */
#include "find/failure/not_finite.h"

#include <string.h>

#include "find/memory/turns.h"
#include "read/recording/trace.h"

#define SINGLE_NAN	0x7fffffffu	/* what a GPU writes; also the largest integer */

enum format { FORMAT_UNKNOWN, FORMAT_HALF, FORMAT_BFLOAT16, FORMAT_SINGLE, FORMAT_DOUBLE };

/* The one of its size that the kernel's name has. */
static enum format format_of(const struct cw_number *x, const char *kernel)
{
	bool half = kernel && (strstr(kernel, "Half") || strstr(kernel, "__half"));
	bool bfloat16 = kernel && (strstr(kernel, "BFloat16") || strstr(kernel, "__nv_bfloat16"));

	if (x->bytes == 8)
		return FORMAT_DOUBLE;
	if (x->bytes == 4)
		return x->value != SINGLE_NAN || (kernel && strstr(kernel, "float")) ? FORMAT_SINGLE : FORMAT_UNKNOWN;
	return half == bfloat16 ? FORMAT_UNKNOWN : half ? FORMAT_HALF : FORMAT_BFLOAT16;
}

static const struct {
	unsigned bits, exponent, fraction;
} parts[] = {
	[FORMAT_HALF] = {16, 5, 10},
	[FORMAT_BFLOAT16] = {16, 8, 7},
	[FORMAT_SINGLE] = {32, 8, 23},
	[FORMAT_DOUBLE] = {64, 11, 52},
};

/* NULL: a number after all. */
static const char *value_word(uint64_t value, enum format f)
{
	uint64_t fraction = value & ((1ull << parts[f].fraction) - 1);
	uint64_t top = (1ull << parts[f].exponent) - 1;

	if (((value >> parts[f].fraction) & top) != top)
		return NULL;
	return fraction ? "NaN" : value >> (parts[f].bits - 1) ? "-infinity" : "infinity";
}

static const char *word_of(const struct cw_number *x, const char *kernel)
{
	enum format f = format_of(x, kernel);

	return f == FORMAT_UNKNOWN ? NULL : value_word(x->value, f);
}

/* Of several, the first in time. */
static const struct cw_number *first_number(struct trace *t)
{
	size_t len = 0;
	const struct cw_number *all = trace_chunk(t, CW_CHUNK_NUMBERS, &len), *first = NULL;

	for (size_t i = 0; all && i < len / sizeof(*all); i++) {
		if (!all[i].stack || (all[i].bytes != 2 && all[i].bytes != 4 && all[i].bytes != 8))
			continue;
		if ((!first || all[i].ticks < first->ticks) && word_of(&all[i], trace_function_name(t, all[i].maker)))
			first = &all[i];
	}
	return first;
}

static const char *spot(const struct trace *t, const struct place *p, struct pool *pool)
{
	return pool_printf(pool, "%s:%u", file_shown(p->file, trace_header(t)->cwd), p->line);
}

bool not_finite_first(struct trace *t, struct not_finite *to, struct pool *pool)
{
	const struct cw_number *x = first_number(t);
	struct turn turns[CW_LOOP_TURNS];
	const char *kernel;
	size_t n;

	memset(to, 0, sizeof(*to));
	if (!x || !place_of_stack(t, x->stack, &to->read))
		return false;
	kernel = trace_function_name(t, x->maker);
	to->value = word_of(x, kernel);
	to->kernel = kernel ? pool_strdup(pool, kernel) : NULL;
	to->times = x->count;
	to->launched = x->maker && place_of_stack(t, x->maker_stack, &to->launch);
	n = turns_of_number(t, x, turns);
	if (turn_to_name(turns, n))
		to->turn = turns_in_words(t, turns, n, pool);
	return true;
}

static bool same_line(const struct place *a, const struct place *b)
{
	return a->line == b->line && !strcmp(a->file, b->file);
}

const char *not_finite_words(const struct trace *t, const struct not_finite *x, struct pool *pool)
{
	bool elsewhere = x->launched && !same_line(&x->launch, &x->read);

	return pool_printf(pool, "%s at %s%s%s%s%s", x->value, spot(t, &x->read, pool), x->turn ? ", in " : "", x->turn ? x->turn : "",
			   elsewhere ? "; computed at " : "", elsewhere ? spot(t, &x->launch, pool) : "");
}
