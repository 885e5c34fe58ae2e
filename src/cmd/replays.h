/* SPDX-License-Identifier: Apache-2.0
 * The memory of a recording, ready to be played back: one for each GPU that each of its processes used.
 */
#ifndef CUWHY_REPLAYS_H
#define CUWHY_REPLAYS_H

#include <stddef.h>

#include "base/err.h"
#include "find/memory/per_turn.h"
#include "find/memory/replay.h"
#include "show/what_if.h"

struct replayed {
	struct trace *trace;
	struct replay *replay;
	int device;
	struct per_turn left;		/* by its turns; see replayed_left */
	bool left_known;
};

struct replays {
	struct replayed *list;
	size_t n, cap;
	struct err left_out;		/* code != 0: the first that could not be */
};

/* 0; -errno with `e` filled when there is nothing to play back. A replay lives as long as the list. */
int replays_open(struct replays *r, const char *path, struct err *e);
void replays_close(struct replays *r);

/* "expandable_segments,gpu=a100-40gb" as a question: settings of PyTorch's allocator, a card, or an amount of memory. The
 * replay's own settings and card stand for what is not named. -EINVAL with `e` filled: it cannot be asked. */
int what_if_parse(struct replay_question *q, const struct replayed *r, const char *words, struct err *e);

/* The same on another card. */
struct card_model;
void what_if_on_card(struct replay_question *q, const struct replayed *r, const struct card_model *card);

/* Settings of PyTorch's allocator that are worth a try, as in PYTORCH_CUDA_ALLOC_CONF; NULL at the end. */
extern const char *const what_if_remedies[];

/* What each turn of the program's loop leaves behind; looked for once. */
const struct per_turn *replayed_left(struct replayed *r);

/* The row's answer is given: if each turn adds to it, by so much, from such a line. */
void what_if_grows(struct what_if_row *row, struct replayed *r, const char *unit, struct pool *pool);

/* Plays it back; over time, too, if the row has room for that. What it names lives in the pool. A recording that ran out of memory because every
 * turn left something is played on: it does so on any card. */
void what_if_answer(struct what_if_row *row, struct replayed *r, const struct replay_question *q, struct pool *pool);

#endif
