/* SPDX-License-Identifier: Apache-2.0
 * What device memory contains, and how far that can be trusted. */
#ifndef CUWHY_SIM_CONTENTS_H
#define CUWHY_SIM_CONTENTS_H

#include "sim/cuda/sim.h"

/* Why a value that the host reads is not the one that a real GPU would return. */
enum sim_unknown {
	SIM_KNOWN = 0,
	SIM_NEVER_WRITTEN = 1,		/* by nothing but kernels */
	SIM_MAY_BE_WRITTEN = 2,		/* the host wrote it, and kernels were given its address since */
	SIM_NOT_KEPT = 3,		/* the host wrote too much at once */
	SIM_OUTDATED = 4,		/* the host wrote it before an allocator above us gave the memory to somebody else; told as 1 */
};

/* All of these are called when work is submitted, in the order of the program. */
void sim_contents_copied(sim_addr to, sim_addr from, size_t bytes, bool dropped);
void sim_contents_filled(sim_addr to, size_t bytes, bool dropped, bool truth);	/* `truth`: see sim_truth.c */
void sim_contents_launched(const struct sim_func *f, void **params, void **extra);

/* Key `pointers` (sim_pointers.c): keeps what a captured kernel was given; is some of it mapped no longer? */
void sim_pointers_keep(struct sim_op *op, const struct sim_func *f, void **params);
bool sim_pointers_lead_nowhere(const struct sim_op *op);
/* Also tells who wants to know. What is there may not be what is to be read: then `invent` of the copy says what. */
void sim_contents_read(sim_addr from, size_t bytes, struct sim_op *copy);

/* Kernels that are computed (sim_known.c). */
enum sim_known {
	SIM_KNOWN_UNSEEN,		/* its name was not looked at yet */
	SIM_KNOWN_NONE,
	SIM_KNOWN_FILL,
	SIM_KNOWN_RAMP,
	SIM_KNOWN_JOIN,
	SIM_KNOWN_SUM,
	SIM_KNOWN_MAX,
	SIM_KNOWN_MIN,
	SIM_KNOWN_ADD,
	SIM_KNOWN_ADD_SCALAR,
	SIM_KNOWN_COMPARE,
};
enum sim_known sim_known_kind(struct sim_func *f);
/* Turns the launch of a fill or a ramp into other work; false: it is to be launched as it is. */
bool sim_known_op(const struct sim_func *f, enum sim_known kind, void **params, struct sim_op *op);
/* What is to be done behind the launch of one of the others (sim_numbers.c); false: nothing, its result is unknown. */
bool sim_numbers_op(const struct sim_func *f, enum sim_known kind, const unsigned int grid[3], void **params,
		    struct sim_op *op);
/* A result, and one or two things of the same size that it is computed from. */
struct sim_piece {
	sim_addr to;
	size_t to_bytes;
	sim_addr from[2];		/* the second: 0, or another one */
	size_t from_bytes;
};
/* If all that they are computed from is known, so are they from now on. */
bool sim_contents_compute(const struct sim_piece *piece, size_t pieces);
void sim_known_ramp(const struct sim_op *op);	/* what a worker does for arange */
void sim_contents_freed(sim_addr at, size_t bytes);

/* The program fills in a truth value: is it True where it was False before? */
bool sim_truth_turns(bool value);

/* Is a write of this size to be dropped? Reading it back then gives zeros. */
bool sim_contents_drops(sim_addr to, size_t bytes);

/* What a worker does with a write that is dropped, and with a read that may be mostly holes. */
void sim_contents_clear(sim_addr at, size_t bytes);
void sim_contents_get(void *to, sim_addr from, size_t bytes);
void sim_contents_invent(void *to, size_t bytes, const struct sim_op *copy);

#endif
