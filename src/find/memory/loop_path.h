/* SPDX-License-Identifier: Apache-2.0
 * Where in the program's loops a block was allocated, or a failure happened: the turns of the loops that count, outermost first.
 * Loops that call a model count, and those around backward; loops inside a model, over its layers, are parts of one turn, also where they
 * are reached without a call of the model (see code/layers.h).
 */
#ifndef CUWHY_LOOP_PATH_H
#define CUWHY_LOOP_PATH_H

#include "find/memory/kinds.h"
#include "find/memory/turns.h"

/* What is known of a loop, by its number. */
enum { LOOP_AROUND_MODEL = 1, LOOP_AROUND_BACKWARD = 2, LOOP_IN_MODEL = 4, LOOP_TURNED = 8 };
struct loops {
	uint8_t *is;
	size_t n;
	bool any_model, any_backward;
	const struct cw_stack *worker;	/* of a thread that works with a model; NULL = none */
	bool workers;			/* several do */
};

#define RECURSION 0x80000000u	/* not the number of a loop but of a string: the file of a function that calls itself */
struct loop_turn { uint32_t loop, turn; };
struct path {
	struct loop_turn step[CW_LOOP_TURNS];
	uint32_t n;
	bool exact;
};

const struct cw_frame *stack_outer_frame(const struct cw_stack *s, uint32_t i);

bool frame_same_function(const struct trace *t, const struct cw_frame *a, const struct cw_frame *b);

/* Do two stacks belong to threads that began in different functions? The main program is one; whatever starts a thread is another. */
bool stacks_begin_apart(const struct trace *t, const struct cw_stack *a, const struct cw_stack *b);

/* Index of the outermost frame of one of these files; the number of frames if there is none. */
uint32_t stack_outermost_of(const struct trace *t, const struct cw_stack *s, const char *const *parts);

/* A function of the user's that calls itself is treated as a loop: each call is a turn. */
void path_add_recursion(struct path *p, const struct trace *t, uint32_t stack);

/* `want` 0: no loop of the program calls a model; then the outermost that is not in one must do, because the others may be over
 * the layers of a model without modules. */
void path_of_turns(struct path *p, const struct trace *t, const struct loops *l, const struct turn *turn, size_t n,
		   uint8_t want);

int path_order(const struct path *a, const struct path *b);

/* How many turns of the innermost loop lie between `a` and `b`; 1 if a loop around it has turned, too. */
uint32_t path_turns_between(const struct path *a, const struct path *b);

/* Was the block allocated in the current turn? All turns of a loop that is over are earlier ones. */
bool path_is_now(const struct path *block, const struct path *now);

/* PyTorch's backward threads have no frames and are in no loop. The thread that waits for them is: in the turns of its last launch. */
size_t turns_at_failure(struct trace *t, const struct cw_failure *f, struct turn *turn);

void loops_find(struct loops *l, struct trace *t, const struct moment *m);

#endif
