/* SPDX-License-Identifier: Apache-2.0
 * A tensor as a kernel of PyTorch's sees it: its sizes and strides, from the parameters of the launch.
 *
 * PyTorch's kernels get these in structures of its own (kb/torch_views.def). Where one of them lies follows from the kernel's name, but what
 * is said about an access must be proven by numbers: those that divide must be those of the sizes, the sizes must have as many elements
 * as the launch says, and every thread must have accessed the address that these sizes and strides give it. If two readings fit and
 * differ, there is none.
 */
#ifndef CUWHY_VIEW_H
#define CUWHY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define VIEW_DIMS	25
#define VIEW_LANES	64	/* more threads prove nothing more */

struct view_lane {
	uint64_t block, thread;	/* of the first dimension */
	uint64_t address;
};

/* What is known of the access. */
struct view_scene {
	const char *kernel;	/* its whole name, for people */
	struct bytes params;
	uint64_t grid, threads;	/* of a block; both 0 if there are more dimensions */
	unsigned width;		/* bytes that each thread accessed */
	bool pointer_known;
	unsigned pointer;	/* the byte of the parameters with the pointer that the code computed the address from */
	struct view_lane lane[VIEW_LANES];
	size_t n_lanes;		/* all those with an address */
};

struct view {
	unsigned n;		/* dimensions, 0 = not known */
	uint64_t size[VIEW_DIMS], stride[VIEW_DIMS];	/* outermost first; strides in elements */
	unsigned bytes;		/* of an element */
	bool typed;		/* that is known; else everything counts bytes */
	unsigned at;		/* the byte of the parameters with its pointer */
	uint64_t pointer;
	bool counted;		/* thread t of block b accessed number b * per_block + ahead + t of its elements */
	uint64_t per_block, ahead;
};

bool view_find(struct view *v, const struct view_scene *s);

/* The position of an access, as many numbers as there are dimensions. False when several positions have that address. The first number can
 * be beyond its size. */
bool view_position(const struct view *v, const struct view_lane *l, uint64_t position[VIEW_DIMS]);

/* The number of its last element, counted from the pointer. */
uint64_t view_last(const struct view *v);

/* Is what a kernel that iterates has at this byte of its parameters one of the sizes and strides? */
bool view_iterates_at(const char *kernel, const char *name, size_t at);

/* view_iterator.c, view_flat.c: one kind each. */
bool view_iterator(struct view *v, const struct view_scene *s, const char *kernel);
bool view_flat(struct view *v, const struct view_scene *s, const char *kernel);

/* Is this the kernel, by its short name and a part of its whole one? */
bool view_is(const struct view_scene *s, const char *kernel, const char *name, const char *part);
/* A template argument that is a number: "128" of "elementwise_kernel<128, 2, …>", number 0. */
bool view_argument(const struct view_scene *s, unsigned number, uint64_t *value);
/* A word of the parameters. */
bool view_word(const struct view_scene *s, size_t at, unsigned bytes, uint64_t *value);

#endif
