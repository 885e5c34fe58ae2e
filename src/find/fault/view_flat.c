/* SPDX-License-Identifier: Apache-2.0
 * Kernels of PyTorch's over tensors without gaps (see view.h, FLAT in kb/torch_views.def).
 *
 * A block whose elements are all there accesses several at once, the last one each by itself. How many elements a block has depends on
 * the release and on the types: all that fit the launch are tried. Code that needs only the lower half of an integer reads only that. What
 * is wanted is how large an element is; if readings differ in that, there is no answer.
 */
#include "find/fault/view.h"

#include <string.h>

#include "case/signature.h"

#define ONE		255	/* in kb/torch_views.def */
#define PER_MAX		32	/* elements per thread; PyTorch's most is 16 */
#define ELEMENT_MAX	16	/* bytes */

static const struct { const char *kernel, *part; unsigned vector; } flats[] = {
#define FLAT(kernel, part, vector) {kernel, part, vector},
#include "kb/torch_views.def"
};

/* How the threads of a block may have been given their elements. */
struct deal {
	uint64_t numel, per, vector;
	unsigned bytes;
	uint64_t turn, piece;	/* the how manieth of a thread's vectors, and which part of it */
};

static bool leads(const struct view_scene *s, const struct deal *d, uint64_t pointer)
{
	for (size_t i = 0; i < s->n_lanes; i++) {
		uint64_t first = s->lane[i].block * s->threads * d->per, per_block = s->threads * d->per;
		bool whole = first < d->numel && d->numel - first >= per_block;
		uint64_t vector = whole ? d->vector : 1;
		uint64_t number = first + (s->lane[i].thread + d->turn * s->threads) * vector;

		if (number >= d->numel || d->turn * vector >= d->per ||
		    (vector == 1 ? d->piece != 0 || s->width > d->bytes : s->width * (d->piece + 1) > vector * d->bytes))
			return false;
		/* a vector is accessed as a whole, unless no instruction can */
		if (vector > 1 && s->width != vector * d->bytes && s->width != 16)
			return false;
		if (pointer + number * d->bytes + d->piece * s->width != s->lane[i].address)
			return false;
	}
	return true;
}

/* Every turn and every piece of a vector. */
static bool leads_somehow(const struct view_scene *s, struct deal *d, uint64_t pointer)
{
	for (d->turn = 0; d->turn < d->per; d->turn++)
		for (d->piece = 0; d->piece == 0 || d->piece * s->width < d->vector * d->bytes; d->piece++)
			if (leads(s, d, pointer))
				return true;
	return false;
}

static bool fits_grid(const struct view_scene *s, const struct deal *d)
{
	uint64_t per_block = s->threads * d->per;

	return (d->numel + per_block - 1) / per_block == s->grid;
}

struct readings {
	unsigned bytes, at;
	uint64_t pointer;
	size_t n;
	bool differ;
};

static void try_pointer(struct readings *r, const struct view_scene *s, struct deal *d, size_t at)
{
	uint64_t pointer;

	if (!view_word(s, at, 8, &pointer) || !pointer || (s->pointer_known && s->pointer != at))
		return;
	for (d->per = 1; d->per <= PER_MAX; d->per *= 2)
		for (d->bytes = 1; d->bytes <= ELEMENT_MAX; d->bytes *= 2) {
			if (!fits_grid(s, d) || !leads_somehow(s, d, pointer))
				continue;
			if (!r->n++) {
				r->bytes = d->bytes;
				r->pointer = pointer;
				r->at = (unsigned)at;
			}
			r->differ = r->differ || r->bytes != d->bytes || r->pointer != pointer;
		}
}

static bool has_gaps(const char *kernel)
{
	const char *at = kernel;

	while ((at = strstr(at, "OffsetCalculator<")) != NULL) {
		if (at - kernel < 7 || strncmp(at - 7, "Trivial", 7) != 0)
			return true;
		at++;
	}
	return false;
}

bool view_flat(struct view *v, const struct view_scene *s, const char *kernel)
{
	struct readings r = {.n = 0};
	struct deal d = {.vector = 1};
	int64_t numel;

	for (size_t i = 0; i < sizeof(flats) / sizeof(flats[0]); i++) {
		if (!view_is(s, kernel, flats[i].kernel, flats[i].part))
			continue;
		if (has_gaps(s->kernel) || !s->width || !s->threads ||
		    !signature_integer(s->kernel, 0, s->params.data, s->params.len, &numel) || numel <= 0 ||
		    numel > INT32_MAX || (flats[i].vector != ONE && !view_argument(s, flats[i].vector, &d.vector)) ||
		    !d.vector || d.vector > PER_MAX)
			return false;
		d.numel = (uint64_t)numel;
		for (size_t at = 8; at + 8 <= s->params.len; at += 8)
			try_pointer(&r, s, &d, at);
		*v = (struct view){.n = 1, .size = {d.numel}, .stride = {1}, .bytes = r.bytes, .typed = true, .at = r.at,
				   .pointer = r.pointer};
		return r.n && !r.differ;
	}
	return false;
}
