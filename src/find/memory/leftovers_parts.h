/* SPDX-License-Identifier: Apache-2.0
 * What earlier turns left, while it is searched for: only for the files leftovers*.c.
 */
#ifndef CUWHY_LEFTOVERS_PARTS_H
#define CUWHY_LEFTOVERS_PARTS_H

#include "find/memory/leftovers.h"
#include "find/memory/loop_path.h"
#include "find/memory/turns.h"
#include "find/failure/place.h"
#include "read/recording/trace_memory.h"

struct entry {
	uint64_t lines;			/* lines_hash */
	struct path path;
	size_t block;
	uint64_t ticks;
	bool graph;			/* an activation */
};

/* `before`: how many before it in the list were released. */
struct node { uint64_t lines; size_t number, before; bool released; };

struct search {
	struct leftovers *out;
	struct trace *trace;
	const struct moment *m;
	struct kinds *k;
	struct loops loops;
	struct path now, now_backward;	/* the failure's, by all loops that count, and by those around backward */
	uint64_t *run;			/* lines_hash of nodes that backward ran, sorted */
	size_t n_run;
	struct node *node;		/* all that are known, by lines, oldest first */
	size_t n_nodes;
	uint64_t failed;		/* lines_hash of the request that failed */
	struct piece request;		/* what it would have been */
	bool in_backward;
	const struct cw_freed *const *freed;
	uint64_t frees_since;		/* ticks: earlier ones were forgotten; 0: none were */
	struct entry *went;		/* freed before the failure, of earlier turns; `block`: index into `freed` */
	size_t n_went;
};

/* What a user's line has, of all stacks that end there. */
struct tally { struct place place; uint64_t bytes, blocks; size_t turns; };
struct tallies { struct tally *list; size_t n; };

/* The blocks of one stack of lines, from `first` to `end`; `turns` 1: of one try. `released`: once an activation, but its graph has gone.
 * `replaced`: each turn freed some and made larger ones instead; `turns` of these are known. */
struct pile { size_t first, end, turns; bool released, replaced; };

/* PyTorch splits off no piece of less than 1 MiB from a large block: one may be so much larger than what was asked for. */
#define LEFT_UNSPLIT (1ull << 20)

static inline bool left_same_size(uint64_t a, uint64_t b)
{
	return a == b || (a > LEFT_UNSPLIT && b > LEFT_UNSPLIT && (a > b ? a - b : b - a) < LEFT_UNSPLIT);
}

/* leftovers.c */
struct tally *tally_of(struct tallies *t, const struct place *place);
void left_add(struct search *s, struct left *l, struct tallies *lines, const struct entry *e, const struct pile *p);
int entry_by_path(const void *a, const void *b);
bool is_part_of_model(enum ledger_kind kind);

/* leftovers_held.c: of the blocks `e` of one stack of lines, and of those that the lines have freed. */
struct held_by_line {
	bool window;			/* blocks of earlier turns are freed while the lines go on, about one for each new one */
	size_t rises;			/* turns after which the lines held more bytes than before, since the first of these frees; 0: not in most turns,
					 * or once they held less */
};
struct held_by_line held_by_line(const struct search *s, const struct entry *e, size_t n);

/* leftovers_graphs.c */
void graphs_find_nodes(struct search *s);
bool graph_waits_for_backward(const struct search *s, const struct entry *e);
/* Of these lines, in `turns` earlier turns. */
bool graph_nodes_let_go(const struct search *s, uint64_t lines, size_t turns);
struct gone {
	bool by_frees;			/* with those of backward */
	bool is;			/* without */
};
struct gone graphs_are_gone(struct search *s, struct entry *kept, size_t n);
void graphs_find_last(struct search *s, struct entry *kept, size_t n);
void graphs_find_loop(struct search *s, const struct entry *kept, size_t n);
bool graphs_mostly_run(const struct search *s, const struct entry *kept, size_t n);

/* leftovers_inside.c: which of these a model kept for itself; the list is the caller's. */
bool *kept_by_models(const struct search *s, const struct entry *e, size_t n);

/* leftovers_tries.c: `now` is the failure; `lines` are those of tensors and of graphs. */
void tries_add(struct search *s, const struct cw_failure *now, struct tallies *lines);

/* leftovers_grown.c */
void grown_find(struct search *s, const struct entry *kept, size_t n, uint64_t lines, uint64_t request);
uint64_t bytes_run_again(const struct search *s);

#endif
