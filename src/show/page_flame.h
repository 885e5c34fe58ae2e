/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's memory by call stack, at two moments: when it ran out (else at the end), and at the peak. The page draws it as a flame graph.
 */
#ifndef CUWHY_PAGE_FLAME_H
#define CUWHY_PAGE_FLAME_H

#include <jansson.h>

#include "base/map.h"
#include "show/page_words.h"

struct cw_failure;
struct snap_device;
struct snapshot;
struct trace;

enum flame_moment { FLAME_NOW, FLAME_PEAK, FLAME_MOMENTS };

struct flame_node {
	uint32_t parent;		/* comes before it; of the first one: itself */
	int name;			/* in the list; -1 = not known */
	uint64_t bytes[FLAME_MOMENTS];	/* with all that it called */
};

struct flame {
	struct flame_node *node;	/* the first is the root */
	size_t n, cap;
	struct map map;
	struct page_words names;
};

void flame_init(struct flame *f);
void flame_release(struct flame *f);

/* `name`: numbers in the list of names, the outermost frame first. */
void flame_add(struct flame *f, const int *name, size_t n, enum flame_moment at, uint64_t bytes);

/* Stacks that hold less than a thousandth at both moments are left out. `at` is "oom" or "end". */
json_t *flame_json(const struct flame *f, const char *at);

/* Null if no stack is known. */
json_t *flame_of_recording(struct trace *t, int device, const struct cw_failure *oom);
json_t *flame_of_snapshot(const struct snapshot *s, const struct snap_device *d);

#endif
