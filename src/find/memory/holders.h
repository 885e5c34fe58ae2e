/* SPDX-License-Identifier: Apache-2.0
 * Which objects of a Python program keep its tensors alive, and by what name the program itself reaches them.
 *
 * Every path that is reported was followed from a name of the program, object by object, to the tensors, and read a second time.
 */
#ifndef CUWHY_HOLDERS_H
#define CUWHY_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pool.h"

struct cw_allocation;
struct pyheap;

#define HOLDERS_MAX	8u

struct holder {
	const char *path;	/* "trainer.metrics.history", "cache[*]['scores']" */
	const char *kind;	/* of the object at its end: "list", "Trainer" */
	uint64_t length;	/* how many items that has; 0 = it has none, or there are many such objects */
	uint64_t bytes;		/* of the blocks that its tensors are in, each counted once in all holders */
	uint64_t graph;		/* of these, by way of autograd graphs and gradients */
	uint32_t tensors, blocks;
	uint32_t stack;		/* where most of these bytes were allocated; 0 = not known */
	const char *function, *file;	/* whose variable the path begins with; NULL = a variable of a module */
	uint32_t line;
};

struct holders {
	struct holder list[HOLDERS_MAX];	/* the most bytes first */
	size_t n;
	uint64_t bytes, blocks;		/* in all tensors that were found */
	uint64_t live_bytes, live_blocks;	/* in use at that time */
	uint64_t objects;		/* looked at */
	bool whole;			/* all of the program's objects were looked at */
	const char *why;		/* nothing was found: why, in words; NULL = it was looked for */
};

struct holders_ask {
	pid_t pid;
	uint64_t exception;	/* the object that ends the program; 0 = it runs */
	const char *torch_path;	/* where libtorch was loaded from; "" = not known */
	uint64_t until_ns, for_ns;	/* CLOCK_MONOTONIC, and how long that is from now */
	const struct cw_allocation *const *block;	/* in use, by address */
	size_t n_blocks;
};

void holders_find(struct holders *to, const struct holders_ask *ask, struct pool *pool);

/* The same where the process has been opened. */
void holders_search(struct holders *to, const struct holders_ask *ask, struct pyheap *heap, struct pool *pool);

#endif
