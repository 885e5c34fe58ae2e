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
struct cw_holders;
struct cw_site;
struct pyheap;
struct trace;

#define HOLDERS_MAX	8u

struct holder {
	const char *path;	/* "trainer.metrics.history", "cache[*]['scores']" */
	const char *kind;	/* of the object at its end: "list", "Trainer" */
	uint64_t length;	/* how many items that has; 0 = it has none, or there are many such objects */
	uint64_t bytes;		/* of the blocks that its tensors are in, each counted once in all holders */
	uint64_t graph;		/* of these, by way of autograd graphs and gradients */
	uint64_t gradients;	/* of these, made to accumulate gradients */
	uint64_t used;		/* of `bytes`, what tensors have elements in; 0 = not known */
	uint32_t tensors, blocks;
	uint32_t stack;		/* where most of these bytes were allocated; 0 = not known */
	const char *function, *file;	/* whose variable the path begins with; NULL = a variable of a module */
	uint32_t line;
};

/* Blocks to which no object leads. */
struct unheld {
	uint64_t bytes;
	uint32_t blocks, stack, flags;	/* CW_SITE_*, CW_UNHELD_* */
};
#define UNHELD_MAX	4u

struct holders {
	struct holder list[HOLDERS_MAX];	/* the most bytes first */
	size_t n;
	uint64_t bytes, blocks;		/* in all tensors that were found */
	uint64_t live_bytes, live_blocks;	/* in use at that time */
	struct unheld unheld[UNHELD_MAX];	/* the most bytes first; bytes 0 = no more */
	uint64_t objects;		/* looked at */
	bool whole;			/* all of the program's objects were looked at, or all blocks explained */
	uint32_t changed;		/* holders that were dropped: a link of their way had changed */
	uint32_t stops;
	uint64_t stop_ns;		/* the longest time that a process that runs was stopped */
	int refused;			/* the process cannot be read: -errno */
	const char *why;		/* nothing was found: why, in words; NULL = it was looked for */
};

struct holders_ask {
	pid_t pid;
	bool running;		/* it goes on meanwhile: what was found is read again while it cannot */
	uint64_t exception;	/* the object that ends the program; 0 = none does */
	const char *torch_path;	/* where libtorch was loaded from; "" = not known */
	uint64_t until_ns, for_ns;	/* CLOCK_MONOTONIC, and how long that is from now */
	const struct cw_allocation *const *block;	/* in use, by address */
	size_t n_blocks;
	const struct cw_site *site;	/* where blocks are allocated */
	size_t n_sites;
};

/* What a recording says of the blocks, and where PyTorch is; valid as long as that is. */
void holders_ask_of(struct holders_ask *to, struct trace *t);

/* As a recording has it. */
void holders_keep(struct cw_holders *to, const struct holders *from);

void holders_find(struct holders *to, const struct holders_ask *ask, struct pool *pool);

/* The same where the process has been opened. */
void holders_search(struct holders *to, const struct holders_ask *ask, struct pyheap *heap, struct pool *pool);

#endif
