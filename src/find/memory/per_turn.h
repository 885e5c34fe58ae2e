/* SPDX-License-Identifier: Apache-2.0
 * What every turn of a program's loop adds to its memory, and after how many turns it runs out.
 */
#ifndef CUWHY_PER_TURN_H
#define CUWHY_PER_TURN_H

#include "case/line.h"
#include "find/memory/leftovers.h"
#include "find/memory/replay.h"
#include "find/memory/replay_turn.h"

/* The loop that works with the model, and how often it turned: of its first run, of the last if that alone has left something, or of all runs if another
 * loop runs it as often each time. */
struct per_turn_loop {
	struct place place;		/* file NULL = not known */
	uint64_t turn;			/* at the end or where memory ran out; 0 = not known, or only part of the turns is */
	uint64_t since;			/* the oldest of what the line has left is of this turn; 0 = not known */
	double rate;			/* its turns for one of `left`, which may be several that differ, or part of one; 0 = not known */
	bool part;			/* what is known begins later than the growth */
	bool exact;			/* else `turn` and `since` are about right */
};

struct per_turn {
	struct turns_left left;		/* of the device on which most is left behind; `turns` 0: not known */
	struct place line;		/* where most of it is made; or what keeps it: see `graphs`; file NULL = not known */
	bool graphs;			/* graphs of autograd are kept, and `line` is where the newest of their tensors were made */
	bool proven;			/* earlier turns of a loop that works with a model left it, or what a line makes is larger each time; */
		     /* what a loop leaves that builds something is not meant */
	struct per_turn_loop loop;
};

void per_turn_find(struct per_turn *p, const struct replay *r, struct trace *t, int device);

/* The same for a failure whose leftovers are known. */
struct per_turn_known {
	struct trace *trace;
	const struct moment *m;
	const struct cw_failure *failure;
	const struct leftovers *left;
};
void per_turn_of(struct per_turn *p, const struct replay *r, const struct per_turn_known *known);

/* per_turn_loop.c. Returns the bytes that were left behind in the turns that are counted; `turns`: of so many. */
uint64_t per_turn_count(struct per_turn_loop *l, const struct replay *r, const struct turns_left *left,
			const struct per_turn_known *known, uint64_t *turns);

/* No two turns asked for the same, as where chance decides: what the tensors that were left say of an average turn of the loop. */
void per_turn_irregular(struct per_turn *p, const struct replay *r, const struct per_turn_known *known);

/* Bytes that are added by a turn of the loop. */
uint64_t per_turn_bytes(const struct per_turn *p);

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

/* In which turn of the loop that is; 0: not known. */
uint64_t per_turn_fails_at(const struct per_turn *p, const struct per_turn_end *end);

/* The same for turns that are irregular, of a program that ran out of memory in such a turn. */
uint64_t per_turn_fails_at_rate(const struct per_turn *p, const struct replay *r, const struct replay_question *q);

#endif
