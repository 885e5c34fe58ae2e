/* SPDX-License-Identifier: Apache-2.0
 * What every turn of a program's loop adds to its memory, and after how many turns it runs out.
 */
#ifndef CUWHY_PER_TURN_H
#define CUWHY_PER_TURN_H

#include "case/line.h"
#include "find/memory/replay.h"
#include "find/memory/replay_turn.h"

struct per_turn {
	struct turns_left left;		/* of the device on which most is left behind; `turns` 0: not known */
	struct place line;		/* where most of it is made; or what keeps it: see `graphs`; file NULL = not known */
	bool graphs;			/* graphs of autograd are kept, and `line` is where the newest of their tensors were made */
	bool proven;			/* earlier turns of a loop that works with a model left it, or what a line makes is larger each time; */
		     /* what a loop leaves that builds something is not meant */
	uint32_t turn;			/* of that loop, at the end or where memory ran out; 0 = not known */
};

void per_turn_find(struct per_turn *p, const struct replay *r, struct trace *t, int device);

/* What was recorded does not fit: did memory run out for what earlier turns had left, not in the first ones? */
bool per_turn_is_why(const struct replay *r, const struct turns_left *left, const struct replay_answer *a);

struct per_turn_end {
	uint64_t turns;			/* that fit, after those that were recorded */
	uint64_t requests;		/* of the next one that did, too */
	bool played;			/* on the model of PyTorch's allocator; else by the bytes alone */
};

/* When will it run out of memory? What was recorded fits, and each turn adds something. */
void per_turn_ends(struct per_turn_end *end, const struct replay *r, const struct replay_question *q,
		   const struct turns_left *left);

#endif
