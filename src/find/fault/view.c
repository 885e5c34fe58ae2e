/* SPDX-License-Identifier: Apache-2.0
 * Tensors as PyTorch's kernels see them (see view.h): which kind it is, those whose layout the kernel's name gives, and positions.
 */
#include "find/fault/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/str.h"
#include "case/signature.h"

#define NONE 255	/* in kb/torch_views.def */
#define SIZE_LIMIT ((uint64_t)1 << 48)

bool view_is(const struct view_scene *s, const char *kernel, const char *name, const char *part)
{
	return !strcmp(kernel, name) && strstr(s->kernel, part) != NULL;
}

bool view_argument(const struct view_scene *s, unsigned number, uint64_t *value)
{
	const char *at = strchr(s->kernel, '<');
	char *end;

	for (; at && number; number--) {
		at = strpbrk(at + 1, ",<>(");
		if (!at || *at != ',')
			return false;
	}
	if (!at)
		return false;
	at += 1 + strspn(at + 1, " ");
	*value = strtoull(at, &end, 10);
	return *at >= '0' && *at <= '9' && (*end == ',' || *end == '>');
}

bool view_word(const struct view_scene *s, size_t at, unsigned bytes, uint64_t *value)
{
	*value = 0;
	if (!s->params.data || bytes > sizeof(*value) || at > s->params.len || bytes > s->params.len - at)
		return false;
	memcpy(value, s->params.data + at, bytes);
	return true;
}

static const struct { const char *kernel; unsigned number, dim, size; } infos[] = {
#define INFO(kernel, number, dim, size) {kernel, number, dim, size},
#include "kb/torch_views.def"
};

static bool read_info(struct view *v, const struct view_scene *s, const struct signature_param *p)
{
	uint64_t dims;

	if (!p->info || !p->points_to || !view_word(s, p->offset + 8 + 2 * (size_t)VIEW_DIMS * p->info, 4, &dims) ||
	    !dims || dims > VIEW_DIMS || !view_word(s, p->offset, 8, &v->pointer))
		return false;
	v->n = (unsigned)dims;
	for (unsigned i = 0; i < v->n; i++)
		if (!view_word(s, p->offset + 8 + (size_t)i * p->info, p->info, &v->size[i]) ||
		    !view_word(s, p->offset + 8 + (size_t)(VIEW_DIMS + i) * p->info, p->info, &v->stride[i]) ||
		    !v->size[i] || v->size[i] >= SIZE_LIMIT || v->stride[i] >= SIZE_LIMIT)
			return false;
	v->at = (unsigned)p->offset;
	v->bytes = p->points_to;
	v->typed = true;
	return true;
}

/* The size of the dimension that the kernel has an index for is not in the TensorInfo. */
static bool restore_size(struct view *v, const struct view_scene *s, unsigned dim, unsigned size)
{
	struct signature_param p;
	int64_t which, large;
	uint64_t first = 0;

	if (dim == NONE)
		return true;
	if (!signature_integer(s->kernel, dim, s->params.data, s->params.len, &which) || which < 0 ||
	    which >= (int64_t)v->n || v->size[which] != 1)
		return false;
	if (!signature_param(s->kernel, size, &p))
		return false;
	if (p.info) {
		if (!view_word(s, p.offset + 8, p.info, &first))
			return false;
	} else if (signature_integer(s->kernel, size, s->params.data, s->params.len, &large) && large > 0) {
		first = (uint64_t)large;
	}
	v->size[which] = first;
	return first > 0 && first < SIZE_LIMIT;
}

static bool view_info(struct view *v, const struct view_scene *s, const char *kernel)
{
	struct signature_param p;

	for (size_t i = 0; s->pointer_known && i < sizeof(infos) / sizeof(infos[0]); i++)
		if (view_is(s, kernel, infos[i].kernel, "") && signature_param(s->kernel, infos[i].number, &p) &&
		    p.offset == s->pointer && read_info(v, s, &p) && restore_size(v, s, infos[i].dim, infos[i].size))
			return true;
	return false;
}

static const struct { const char *kernel; unsigned number, size, width, stride; } rows[] = {
#define ROWS(kernel, number, size, width, stride) {kernel, number, size, width, stride},
#include "kb/torch_views.def"
};

static bool row_number(const struct view_scene *s, unsigned number, uint64_t *value)
{
	int64_t v;

	if (!signature_integer(s->kernel, number, s->params.data, s->params.len, &v) || v <= 0 ||
	    (uint64_t)v >= SIZE_LIMIT)
		return false;
	*value = (uint64_t)v;
	return true;
}

static bool view_rows(struct view *v, const struct view_scene *s, const char *kernel)
{
	struct signature_param p;

	for (size_t i = 0; s->pointer_known && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!view_is(s, kernel, rows[i].kernel, "") || !signature_param(s->kernel, rows[i].number, &p) ||
		    p.offset != s->pointer)
			continue;
		v->n = 2;
		v->bytes = v->stride[1] = 1;
		v->at = s->pointer;
		return view_word(s, v->at, 8, &v->pointer) && row_number(s, rows[i].size, &v->size[0]) &&
		       row_number(s, rows[i].width, &v->size[1]) && row_number(s, rows[i].stride, &v->stride[0]);
	}
	return false;
}

/* What the threads accessed must be elements, none of them before the first; and no product overflows. */
static bool fits_lanes(const struct view *v, const struct view_scene *s)
{
	for (unsigned i = 0; i < v->n; i++)
		if (v->stride[i] && v->size[i] > SIZE_LIMIT / v->stride[i])
			return false;
	for (size_t i = 0; i < s->n_lanes; i++)
		if (s->lane[i].address < v->pointer || (s->lane[i].address - v->pointer) % v->bytes)
			return false;
	return s->n_lanes > 0;
}

bool view_find(struct view *v, const struct view_scene *s)
{
	bool (*const kinds[])(struct view * v, const struct view_scene *s, const char *kernel) = {
		view_iterator, view_flat, view_info, view_rows,
	};
	struct pool pool = {0};
	const char *kernel;
	bool found = false;

	*v = (struct view){.n = 0};
	if (!s->kernel || !s->params.data || !s->n_lanes || !strstr(s->kernel, "at::native::"))
		return false;
	kernel = kernel_short_name(s->kernel, &pool);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !found; i++) {
		*v = (struct view){.n = 0};
		found = kinds[i](v, s, kernel) && fits_lanes(v, s);
	}
	pool_release(&pool);
	if (!found)
		*v = (struct view){.n = 0};
	return found;
}

uint64_t view_last(const struct view *v)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < v->n; i++)
		last += (v->size[i] - 1) * v->stride[i];
	return last;
}

/* An address has one position if each step of a dimension is larger than all that the smaller ones reach together. */
static bool split(const struct view *v, uint64_t number, uint64_t position[VIEW_DIMS])
{
	unsigned order[VIEW_DIMS], n = v->n;
	uint64_t reach = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned k = i;

		for (; k > 0 && v->stride[order[k - 1]] > v->stride[i]; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	for (unsigned i = 0; i < n; i++) {
		if (v->size[order[i]] > 1 && v->stride[order[i]] <= reach)
			return false;
		reach += (v->size[order[i]] - 1) * v->stride[order[i]];
	}
	for (unsigned i = n; i > 0; i--) {
		unsigned d = order[i - 1];

		position[d] = v->size[d] > 1 && v->stride[d] ? number / v->stride[d] : 0;
		if (position[d] >= v->size[d] && i < n)
			return false;
		number -= position[d] * v->stride[d];
	}
	return number == 0;
}

bool view_position(const struct view *v, const struct view_lane *l, uint64_t position[VIEW_DIMS])
{
	uint64_t number;

	if (!v->n || l->address < v->pointer || (l->address - v->pointer) % v->bytes)
		return false;
	if (!v->counted)
		return split(v, (l->address - v->pointer) / v->bytes, position);
	number = l->block * v->per_block + v->ahead + l->thread;
	for (unsigned i = v->n; i > 0; i--) {
		position[i - 1] = number % v->size[i - 1];
		number /= v->size[i - 1];
	}
	return number == 0;
}
