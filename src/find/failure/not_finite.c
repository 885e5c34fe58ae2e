/* SPDX-License-Identifier: Apache-2.0
 * The first NaN or infinity that a program read (see not_finite.h).
 *
 * The recorder keeps bytes that may be one. The kernel that was given their address first says of which type they are; where it does not, those
 * count that are no plausible integer.
 */
#include "find/failure/not_finite.h"

#include <stdlib.h>
#include <string.h>

#include "find/memory/turns.h"
#include "read/recording/copies.h"
#include "read/recording/trace.h"

#define SINGLE_NAN	0x7fffffffu	/* what a GPU writes, perhaps negated; also the largest integer, and -1 */
#define SIGN		0x80000000u	/* with it, the others are -2^22 and -2^23, the least number of 24 bits */

enum format { FORMAT_UNKNOWN, FORMAT_HALF, FORMAT_BFLOAT16, FORMAT_SINGLE, FORMAT_DOUBLE };

static bool is_part(char ch)
{
	return ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
}

/* "(int, " of a kernel's own parameters: the first of them is how many elements there are. */
static bool is_count(const char *kernel, const char *s)
{
	return s > kernel && s[-1] == '(' && s[3] == ',' && (s - kernel < 7 || strncmp(s - 7, "lambda(", 7) != 0);
}

/* Does it have tensors of `int`? Sizes and offsets are `unsigned int`, and the numbers of a template have their type in parentheses. */
static bool has_integers(const char *kernel)
{
	const char *s = kernel;

	while ((s = strstr(s, "int")) != NULL) {
		bool word = (s == kernel || !is_part(s[-1])) && !is_part(s[3]);
		bool other = (s - kernel >= 9 && !strncmp(s - 9, "unsigned ", 9)) ||
			     (s > kernel && s[-1] == '(' && s[3] == ')') || is_count(kernel, s);

		if (word && !other)
			return true;
		s += 3;
	}
	return false;
}

/* The one of its size that the kernel's name has. */
static enum format format_of(const struct cw_number *x, const char *kernel)
{
	bool half = kernel && (strstr(kernel, "Half") || strstr(kernel, "__half"));
	bool bfloat16 = kernel && (strstr(kernel, "BFloat16") || strstr(kernel, "__nv_bfloat16"));

	if (x->bytes == 8)
		return FORMAT_DOUBLE;
	if (x->bytes == 4)
		return (kernel && strstr(kernel, "float") && !has_integers(kernel)) ||
				       (x->value != SINGLE_NAN && !(x->value & SIGN))
			       ? FORMAT_SINGLE
			       : FORMAT_UNKNOWN;
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

static bool is_value(const struct trace *t, const struct cw_copy *c, const struct cw_number *x)
{
	uint64_t value = 0;

	return trace_copied(t, c, x->from - c->to, &value, x->bytes) && value == x->value;
}

static bool is_given(const struct cw_launch *l, uint64_t address)
{
	uint32_t n = l->n_param < CW_PARAM_BYTES ? l->n_param : CW_PARAM_BYTES;
	uint64_t word;

	for (uint32_t at = 0; at + sizeof(word) <= n; at += sizeof(word)) {
		memcpy(&word, l->params + at, sizeof(word));
		if (word == address)
			return true;
	}
	return false;
}

/* Between the copy and the read, a kernel was given the address: it may have computed the value. */
static bool used_since(struct trace *t, const struct cw_copy *c, const struct cw_number *x)
{
	const struct cw_launch *const *list;
	size_t n = trace_launches(t, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i]->ticks > c->ticks && list[i]->ticks < x->ticks && is_given(list[i], x->from))
			return true;
	return false;
}

/* The newest copy from the host to where it was read from, since the block was made: was it that value already? */
static bool find_copy(struct trace *t, const struct cw_number *x, struct place *where, bool *used)
{
	const struct cw_copy **copy, *found = NULL;
	size_t n = trace_copies(t, &copy);

	for (size_t i = 0; i < n; i++)
		if (copy[i]->ticks >= x->block_ticks && copy[i]->ticks <= x->ticks && x->from >= copy[i]->to &&
		    x->from - copy[i]->to < copy[i]->bytes)
			found = copy[i];
	free(copy);
	*used = found && used_since(t, found, x);
	return found && is_value(t, found, x) && place_of_stack(t, found->stack, where);
}

bool not_finite_first(struct trace *t, struct not_finite *to, struct pool *pool)
{
	const struct cw_number *x = first_number(t);
	struct turn turns[CW_LOOP_TURNS];
	const char *kernel;
	bool used;
	size_t n;

	memset(to, 0, sizeof(*to));
	if (!x || !place_of_stack(t, x->stack, &to->read))
		return false;
	kernel = x->maker ? trace_function_name(t, x->maker) : NULL;
	to->value = word_of(x, kernel);
	to->kernel = kernel ? pool_strdup(pool, kernel) : NULL;
	to->times = x->count;
	to->copied = find_copy(t, x, &to->made, &used);
	to->computed = !to->copied && x->maker && x->maker_stack && place_of_stack(t, x->maker_stack, &to->made);
	to->used = (!to->copied || used) && x->user && place_of_stack(t, x->user_stack, &to->last);
	n = turns_of_number(t, x, turns);
	if (turn_to_name(turns, n))
		to->turn = turns_in_words(t, turns, n, pool);
	return true;
}

static bool same_line(const struct place *a, const struct place *b)
{
	return a->line == b->line && !strcmp(a->file, b->file);
}

static const char *origin(const struct trace *t, const struct not_finite *x, struct pool *pool)
{
	bool made = x->copied || x->computed, last = x->used && !(made && same_line(&x->made, &x->last));
	const char *how = x->copied ? "copied to the GPU at" : last ? "first computed at" : "computed at";

	if (!x->copied && !(made && !same_line(&x->made, &x->read)) && !(last && !same_line(&x->last, &x->read)))
		return "";
	if (!made)
		return pool_printf(pool, "; last used by a kernel of %s", spot(t, &x->last, pool));
	if (!last)
		return pool_printf(pool, "; %s %s", how, spot(t, &x->made, pool));
	return pool_printf(pool, "; %s %s, last used by a kernel of %s", how, spot(t, &x->made, pool),
			   spot(t, &x->last, pool));
}

const char *not_finite_words(const struct trace *t, const struct not_finite *x, struct pool *pool)
{
	return pool_printf(pool, "%s at %s%s%s%s", x->value, spot(t, &x->read, pool), x->turn ? ", in " : "",
			   x->turn ? x->turn : "", origin(t, x, pool));
}
