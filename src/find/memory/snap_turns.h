/* SPDX-License-Identifier: Apache-2.0
 * In which turn of the program's loops each event of a snapshot happened, derived from lines of code.
 *
 * A snapshot has no turns, but every allocation has its stack. While the callers of a function stay where they are, lines of
 * that function come in the order of the code; where they go back, a loop has turned. Nested loops of one function are counted as
 * one, so these turns are never exact.
 */
#ifndef CUWHY_SNAP_TURNS_H
#define CUWHY_SNAP_TURNS_H

#include "find/memory/snap_replay.h"

struct snap_turn {
	uint32_t up;			/* the turn of the loop around it; 0 = none */
	uint32_t loop, turn;		/* `turn` counts from 1 */
};

/* A function that has a loop. */
struct snap_loop {
	uint32_t file, function, line;	/* texts; the first line of its body that was seen */
};

/* The Python frames of a stack, by numbers of frames, the outermost first. */
struct snap_calls {
	uint32_t first, n;		/* in `frames` */
	uint32_t own;			/* so many frames come before a model, backward or an optimizer is called */
	bool model, backward, optimizer;
};

struct snap_turns {
	uint32_t *of_event;		/* index into `turn`; 0 = in no loop */
	struct snap_turn *turn;
	struct snap_loop *loop;		/* both from 1 */
	size_t n_turns, n_loops, cap_turns, cap_loops;
	struct snap_calls *calls;	/* by stack */
	uint32_t *frames;
	size_t n_frames, cap_frames;
	bool stacks;			/* any event has one */
};

/* Is it one of backward's threads, which have no Python code? */
static inline bool snap_in_backward(const struct snap_turns *x, const struct snap_replay *r, size_t event)
{
	const struct snap_calls *c = &x->calls[r->event[event].stack];

	return x->stacks && (!c->n || c->backward);
}

/* Up to event `end`, which counts. */
void snap_turns_find(struct snap_turns *x, const struct snap_replay *r, size_t end);
void snap_turns_release(struct snap_turns *x);

/* Which blocks of a snapshot autograd seems to have saved for backward, judged by how long they lived. Without gradients, a model's
 * intermediate results are freed before it returns, and only its result stays. With gradients, many of them stay until backward has run.
 * A snapshot says no more than that. */

enum { NOT_SAVED, SAVED, SAVED_AND_RUN };	/* the last: backward has run the graph that it is of */

/* One for each event, up to `end`; the caller frees them. */
uint8_t *snap_saved(const struct snap_turns *x, const struct snap_replay *r, size_t end);

#endif
