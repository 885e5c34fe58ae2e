/* SPDX-License-Identifier: Apache-2.0
 * Writers of what would have happened on other cards and with other settings.
 */
#ifndef CUWHY_WRITE_WHAT_IF_H
#define CUWHY_WRITE_WHAT_IF_H

#include <stdio.h>

#include <jansson.h>

#include "base/pool.h"
#include "find/memory/replay.h"
#include "find/memory/smaller.h"

struct trace;

/* Every turn of the program's loop adds to its memory. */
struct what_if_growth {
	uint64_t bytes;			/* in one of these; 0: it does not grow, or that is not known */
	const char *unit;		/* "step" of the optimizer, "iteration" of the loop */
	uint64_t fails_at;		/* the one in which memory would run out; 0: not known, or it did in what was played back */
	bool steady;			/* by as much each time, or */
	uint64_t more;			/* by so much more than the time before */
	uint64_t since;			/* the oldest that is left is of this one; 0: not known */
	bool played;			/* as in struct per_turn_end */
	bool graphs;			/* kept graphs */
	const char *line;		/* NULL = not known */
};

struct what_if_row {
	const char *words;		/* the question, or the card; "" = as recorded */
	uint64_t total, room;		/* the card's memory; of that, what PyTorch can have */
	struct replay_over_time *over_time;	/* filled when answered; NULL = not asked for */
	struct replay_answer answer;
	const char *where;		/* the line that asked for what does not fit; NULL = not known */
	struct what_if_growth growth;
	struct smaller smaller;		/* how much of the batch fits; not asked for: not known */
	const char *change;		/* `cuwhy fit`: what helps, played back as well; NULL = nothing that was tried */
};

/* What is played back: whose memory, and how well it came out the first time. `limitless`: on a card of any size, for a dry run. */
void what_if_print_head(FILE *out, const struct trace *t, int device, const struct replay *r, bool limitless);
json_t *what_if_head_json(const struct trace *t, int device, const struct replay *r);

/* `first`: what the rows are, "WHAT IF" or "GPU"; `changes`: with a column of what helps. */
struct what_if_style {
	const char *first;
	bool changes;
};
void what_if_print(FILE *out, const struct what_if_row *row, size_t n, const struct what_if_style *style);
json_t *what_if_row_json(const struct what_if_row *row);
json_t *what_if_card_json(const struct what_if_row *row);	/* the question being a card */

/* Why answers are not exact: bits by enum replay_doubt. */
void what_if_print_doubts(FILE *out, unsigned doubts);
json_t *what_if_doubts_json(unsigned doubts);

/* For the report page: used and reserved over time under each of them. */
json_t *what_if_over_time_json(struct trace *t, const struct replay *r, const struct what_if_row *row, size_t n);

#endif
