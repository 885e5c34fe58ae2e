/* SPDX-License-Identifier: Apache-2.0
 * Kernels of PyTorch's that iterate over tensors with gaps (see view.h, ITERATOR in kb/torch_views.def).
 *
 * The sizes are those of all operands, in the order of PyTorch's iterator: the fastest first, dimensions that lie behind each other as
 * one.
 */
#include "find/fault/view.h"

#include <string.h>

#include "case/signature.h"

#define CALCULATOR	8	/* where it begins: the second parameter, behind a number */
#define DIVIDER		12	/* bytes: the size, a factor and a shift */
#define OPERANDS_MAX	8
#define PER_MAX		64	/* elements per thread; PyTorch's most is 16 */

static const struct { const char *kernel, *part; unsigned per, operands; } iterators[] = {
#define ITERATOR(kernel, part, per, operands) {kernel, part, per, operands},
#include "kb/torch_views.def"
};

struct calculator {
	unsigned dims;
	uint64_t size[VIEW_DIMS];
	uint64_t numel;
	uint64_t per;	/* elements per thread */
};

/* Division by a constant as a product and a shift: the pair that belongs to this divisor. */
static bool divides(uint64_t size, uint64_t factor, uint64_t shift)
{
	unsigned s = 0;

	if (!size || size > INT32_MAX)
		return false;
	while (((uint64_t)1 << s) < size)
		s++;
	return shift == s && factor == (uint32_t)(((((uint64_t)1 << s) - size) << 32) / size + 1);
}

static bool read_sizes(struct calculator *c, const struct view_scene *s)
{
	uint64_t dims, factor, shift, product = 1;
	int64_t numel;

	if (!signature_integer(s->kernel, 0, s->params.data, s->params.len, &numel) || numel <= 0 ||
	    numel > INT32_MAX || !view_word(s, CALCULATOR, 4, &dims) || !dims || dims > VIEW_DIMS)
		return false;
	c->dims = (unsigned)dims;
	c->numel = (uint64_t)numel;
	for (unsigned i = 0; i < c->dims; i++) {
		size_t at = CALCULATOR + 4 + (size_t)i * DIVIDER;

		if (!view_word(s, at, 4, &c->size[i]) || !view_word(s, at + 4, 4, &factor) ||
		    !view_word(s, at + 8, 4, &shift) || !divides(c->size[i], factor, shift))
			return false;
		product *= c->size[i];
		if (product > c->numel)
			return false;
	}
	return product == c->numel;
}

static size_t strides_end(unsigned operands)
{
	return CALCULATOR + 4 + (size_t)VIEW_DIMS * DIVIDER + (size_t)VIEW_DIMS * 4 * operands;
}

static bool read_strides(uint64_t stride[VIEW_DIMS], const struct calculator *c, const struct view_scene *s,
			 unsigned operands, unsigned operand)
{
	for (unsigned i = 0; i < c->dims; i++)
		if (!view_word(s, CALCULATOR + 4 + (size_t)VIEW_DIMS * DIVIDER + ((size_t)i * operands + operand) * 4,
			       4, &stride[i]) ||
		    stride[i] > INT32_MAX || stride[i] % s->width)
			return false;
	return true;
}

/* Do these strides lead every thread from the pointer to the address that it accessed? */
static bool leads(const struct calculator *c, const struct view_scene *s, const uint64_t stride[VIEW_DIMS],
		  uint64_t pointer, uint64_t ahead)
{
	for (size_t i = 0; i < s->n_lanes; i++) {
		uint64_t number = s->lane[i].block * s->threads * c->per + ahead + s->lane[i].thread, offset = 0;

		if (number >= c->numel)
			return false;
		for (unsigned d = 0; d < c->dims; d++) {
			offset += number % c->size[d] * stride[d];
			number /= c->size[d];
		}
		if (offset > UINT32_MAX || pointer + offset != s->lane[i].address)
			return false;
	}
	return true;
}

/* Code that needs only the lower half of an integer reads only that. A stride that is an odd multiple of what was accessed proves that
 * it was a whole element. */
static bool is_whole(const struct calculator *c, const struct view_scene *s, const uint64_t stride[VIEW_DIMS])
{
	for (unsigned i = 0; i < c->dims; i++)
		if (stride[i] / s->width % 2)
			return true;
	return false;
}

static struct view view_of(const struct calculator *c, const struct view_scene *s, const uint64_t stride[VIEW_DIMS],
			   size_t at, uint64_t pointer, uint64_t ahead)
{
	struct view v = {.n = c->dims, .bytes = 1, .at = (unsigned)at, .pointer = pointer, .counted = true,
			 .per_block = s->threads * c->per, .ahead = ahead};

	v.typed = is_whole(c, s, stride);
	v.bytes = v.typed ? s->width : 1;
	for (unsigned i = 0; i < c->dims; i++) {
		v.size[c->dims - 1 - i] = c->size[i];
		v.stride[c->dims - 1 - i] = stride[i] / v.bytes;
	}
	return v;
}

struct readings {
	struct view first;
	size_t n;
	bool differ;
};

/* Two operands may be the same tensor: then it does not matter which it was. */
static void add(struct readings *r, const struct view *v)
{
	struct view same = *v;

	same.at = r->first.at;
	if (!r->n++)
		r->first = *v;
	else if (memcmp(&same, &r->first, sizeof(same)) != 0)
		r->differ = true;
}

static void try_pointer(struct readings *r, const struct calculator *c, const struct view_scene *s, unsigned operands,
			unsigned operand, size_t at)
{
	uint64_t stride[VIEW_DIMS], pointer;
	struct view v;

	if (!view_word(s, at, 8, &pointer) || !pointer || !read_strides(stride, c, s, operands, operand))
		return;
	if (s->pointer_known && s->pointer != at)
		return;
	for (uint64_t i = 0; i < c->per; i++)
		if (leads(c, s, stride, pointer, i * s->threads)) {
			v = view_of(c, s, stride, at, pointer, i * s->threads);
			add(r, &v);
		}
}

/* The pointers are right behind, one for each operand; how many there are is not known. */
static void try_behind(struct readings *r, const struct calculator *c, const struct view_scene *s)
{
	for (unsigned n = 1; n <= OPERANDS_MAX; n++)
		for (unsigned i = 0; i < n; i++)
			try_pointer(r, c, s, n, i, (strides_end(n) + 7) / 8 * 8 + (size_t)i * 8);
}

static void try_anywhere(struct readings *r, const struct calculator *c, const struct view_scene *s, unsigned operands)
{
	for (size_t at = (strides_end(operands) + 7) / 8 * 8; at + 8 <= s->params.len; at += 8)
		for (unsigned i = 0; i < operands; i++)
			try_pointer(r, c, s, operands, i, at);
}

bool view_iterator(struct view *v, const struct view_scene *s, const char *kernel)
{
	struct calculator c = {.dims = 0};
	struct readings r = {.n = 0};
	uint64_t threads;

	for (size_t i = 0; i < sizeof(iterators) / sizeof(iterators[0]); i++) {
		if (!view_is(s, kernel, iterators[i].kernel, iterators[i].part))
			continue;
		if (!s->width || !view_argument(s, 0, &threads) || threads != s->threads ||
		    !view_argument(s, iterators[i].per, &c.per) || !c.per || c.per > PER_MAX || !read_sizes(&c, s))
			return false;
		if (iterators[i].operands)
			try_anywhere(&r, &c, s, iterators[i].operands);
		else
			try_behind(&r, &c, s);
		*v = r.first;
		return r.n && !r.differ;
	}
	return false;
}

bool view_iterates_at(const char *kernel, const char *name, size_t at)
{
	for (size_t i = 0; i < sizeof(iterators) / sizeof(iterators[0]); i++)
		if (!strcmp(name, iterators[i].kernel) && strstr(kernel, iterators[i].part))
			return at >= CALCULATOR && at < strides_end(1);
	return false;
}
