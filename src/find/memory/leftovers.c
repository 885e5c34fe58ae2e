/* SPDX-License-Identifier: Apache-2.0
 * What earlier turns of the program's loops have left behind (see leftovers.h).
 */
#include "find/memory/leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/str.h"
#include "find/memory/loop_path.h"
#include "find/failure/place.h"
#include "read/recording/trace_memory.h"
#include "find/memory/turns.h"

struct entry {
	uint64_t lines;			/* lines_hash */
	struct path path;
	size_t block;
	uint64_t ticks;
	bool graph;			/* an activation */
};

static int by_lines_and_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = x->lines < y->lines ? -1 : x->lines > y->lines;

	c = c ? c : x->graph - y->graph;
	c = c ? c : path_order(&x->path, &y->path);
	return c ? c : x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

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
	bool in_backward;
	const struct cw_freed *const *freed;
	struct entry *went;		/* freed before the failure, of earlier turns; `block`: index into `freed` */
	size_t n_went;
};

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int by_lines_and_number(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->lines != y->lines)
		return x->lines < y->lines ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void find_nodes(struct search *s)
{
	const struct trace_node *node;
	size_t n = trace_nodes(s->trace, &node);

	s->run = xcalloc(n + 1, sizeof(*s->run));
	s->node = xcalloc(n + 1, sizeof(*s->node));
	for (size_t i = 0; i < n; i++) {
		uint64_t lines = lines_hash(s->trace, node[i].stack);

		s->node[s->n_nodes++] = (struct node){.lines = lines, .number = i, .released = node[i].released};
		if (node[i].has_run)
			s->run[s->n_run++] = lines;
	}
	xsort(s->run, s->n_run, sizeof(*s->run), by_number);
	xsort(s->node, s->n_nodes, sizeof(*s->node), by_lines_and_number);
	for (size_t i = 0; i < s->n_nodes; i++)		/* one more than there are nodes: the sum of all */
		s->node[i + 1].before = s->node[i].before + s->node[i].released;
}

/* Index of the first node of these lines, or of later ones. */
static size_t first_node(const struct search *s, uint64_t lines)
{
	size_t low = 0, high = s->n_nodes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->node[middle].lines < lines)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Activations wait for backward: where that runs, a turn of its loop is what frees them, however many turns of inner loops
 * (over time steps, over parts of a batch) it takes to make them. */
static bool waits_for_backward(const struct search *s, const struct entry *e)
{
	return e->graph && s->loops.any_backward &&
	       (s->in_backward || (s->n_run && bsearch(&e->lines, s->run, s->n_run, sizeof(*s->run), by_number)));
}

/* Is this a thread that has nothing to do with the model? It may feed it, for instance. */
static bool is_of_other_thread(const struct search *s, uint32_t stack)
{
	const struct cw_stack *x = stack ? trace_stack(s->trace, stack) : NULL;

	return x && s->loops.worker && !s->loops.workers && stacks_begin_apart(s->trace, x, s->loops.worker);
}

static bool entry_of(struct search *s, struct entry *e, const struct piece *p)
{
	uint8_t all = s->loops.any_model ? LOOP_AROUND_MODEL : 0;
	struct turn turn[CW_LOOP_TURNS];
	size_t n = turns_of_piece(s->trace, p, turn);
	bool backward;

	*e = (struct entry){.lines = kinds_about(s->k, p)->lines, .ticks = p->ticks, .graph = kinds_of(s->k, p) == KIND_ACTIVATIONS};
	backward = waits_for_backward(s, e);
	if (!kinds_about(s->k, p)->backward && is_of_other_thread(s, p->stack))
		all = 0;
	path_of_turns(&e->path, s->trace, &s->loops, turn, n, backward ? LOOP_AROUND_BACKWARD : all);
	path_add_recursion(&e->path, s->trace, p->stack ? p->stack : p->forward_stack);
	return e->path.n && !path_is_now(&e->path, backward ? &s->now_backward : &s->now);
}

static void find_went(struct search *s)
{
	size_t n = trace_freed(s->trace, &s->freed);

	s->went = xcalloc(n + 1, sizeof(*s->went));
	for (size_t i = 0; i < n; i++) {
		struct piece p = piece_of_freed(s->trace, s->freed[i]);

		if (p.kind != CW_MEM_TORCH || p.device != s->m->device || s->freed[i]->ticks > s->m->when ||
		    !entry_of(s, &s->went[s->n_went], &p))
			continue;
		s->went[s->n_went++].block = i;
	}
}

/* The nodes of these lines have let go of what they had saved, except for the current turn's, which may still be about to run:
 * whatever stays of them, in `turns` earlier turns, is no graph. A node for each of these turns would have been left if it were.
 * With a part of the nodes forgotten, a part of the turns is. */
static bool nodes_let_go(const struct search *s, uint64_t lines, size_t turns)
{
	uint64_t all = trace_header(s->trace)->n_nodes;
	double known = all > s->n_nodes ? (double)s->n_nodes / (double)all : 1;
	size_t first = first_node(s, lines), n = first_node(s, lines + 1) - first;
	double now = (double)n / (known * (double)(turns + 1)) + 1;
	size_t earlier = now < (double)n ? n - (size_t)now : 0;
	size_t released = s->node[first + earlier].before - s->node[first].before;

	return released && (double)(earlier - released) < known * (double)turns / 4;
}

/* Which part of the nodes of these lines has not. */
static double part_that_waits(const struct search *s, uint64_t lines)
{
	size_t first = first_node(s, lines), end = first_node(s, lines + 1);
	size_t released = s->node[end].before - s->node[first].before;

	return end > first ? 1 - (double)released / (double)(end - first) : 1;
}

/* What backward needs is freed when the graph goes, which is after the last activation of its turn was made. If more of these
 * turns went that way than is left of them, then not the graph was kept, but some of its tensors. Only turns of which no free
 * has been forgotten count. */
static bool turn_starts_after(const struct entry *e, size_t n, uint64_t ticks)
{
	for (size_t i = 0; i < n; i++)
		if (e[i].ticks < ticks)
			return false;
	return true;
}

static int by_path(const void *a, const void *b)
{
	return path_order(&((const struct entry *)a)->path, &((const struct entry *)b)->path);
}

/* `kept`: activations that stayed, which are sorted by path here. What backward freed, which is as much of a line's tensors as it
 * ran of its nodes, says nothing of graphs that it did not run. Without a turn whose frees are all known (before 2.6, they had no
 * turns), graphs and tensors that outlived theirs look the same. */
struct gone {
	bool by_frees;			/* with those of backward */
	bool is;			/* without */
};

static struct gone graphs_are_gone(struct search *s, struct entry *kept, size_t n)
{
	size_t frees = trace_freed(s->trace, &s->freed), went_n = 0;
	struct entry *went = xcalloc(s->n_went + 1, sizeof(*went));
	double stay = 0, left = 0, waited = 0;
	uint64_t covered = trace_header(s->trace)->n_blocks_freed > frees && frees ? s->freed[0]->ticks : 0;

	for (size_t i = 0; i < s->n_went; i++)
		if (s->went[i].graph)
			went[went_n++] = s->went[i];
	xsort(kept, n, sizeof(*kept), by_path);
	xsort(went, went_n, sizeof(*went), by_path);
	for (size_t i = 0, end, j = 0; i < n; i = end) {
		uint64_t last = 0, bytes = 0;
		size_t first;

		for (end = i; end < n && !by_path(&kept[i], &kept[end]); end++) {
			bytes += s->m->torch.list[kept[end].block].size;
			last = kept[end].ticks > last ? kept[end].ticks : last;
		}
		while (j < went_n && by_path(&went[j], &kept[i]) < 0)
			j++;
		for (first = j; j < went_n && !by_path(&went[j], &kept[i]); j++)
			last = went[j].ticks > last ? went[j].ticks : last;
		if (!turn_starts_after(kept + i, end - i, covered) ||
		    !turn_starts_after(went + first, j - first, covered))
			continue;
		for (size_t w = first; w < j; w++)
			if (s->freed[went[w].block]->ticks > last) {
				left += (double)s->freed[went[w].block]->size;
				waited += (double)s->freed[went[w].block]->size * part_that_waits(s, went[w].lines);
			}
		stay += (double)bytes;
	}
	free(went);
	if (n && (stay <= 0 || trace_header(s->trace)->minor < 6))
		s->out->exact = false;
	return (struct gone){.by_frees = left > stay, .is = waited > stay};
}

/* A block of some lines, live or freed. */
struct life { uint64_t made, freed; const struct path *path; };

static int by_made(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	return x->made < y->made ? -1 : x->made > y->made;
}

/* All blocks of the lines of this pile, in the order in which they were allocated. */
static struct life *lives_of(const struct search *s, const struct entry *e, size_t n, size_t *all)
{
	struct life *life = xcalloc(n + s->n_went + 1, sizeof(*life));

	*all = 0;
	for (size_t i = 0; i < n; i++)
		life[(*all)++] = (struct life){e[i].ticks, UINT64_MAX, &e[i].path};
	for (size_t i = 0; i < s->n_went; i++)
		if (s->went[i].lines == e->lines && s->went[i].graph == e->graph)
			life[(*all)++] =
				(struct life){s->went[i].ticks, s->freed[s->went[i].block]->ticks, &s->went[i].path};
	xsort(life, *all, sizeof(*life), by_made);
	return life;
}

/* Was it freed after two later turns had allocated theirs? */
static bool is_dropped(const struct life *life, size_t n, size_t i)
{
	const struct path *turn = life[i].path;
	size_t later = 0;

	for (size_t k = i + 1; k < n && life[k].made <= life[i].freed && later < 2; k++) {
		later += path_order(turn, life[k].path) < 0;
		turn = path_order(turn, life[k].path) < 0 ? life[k].path : turn;
	}
	return later == 2;
}

/* Lines that drop what they kept for a while: a list of the last few, a buffer that is overwritten. If there are many more blocks
 * now than when the first of them was dropped, this is a queue that grows. */
static bool drops(const struct search *s, const struct entry *e, size_t n)
{
	size_t all, there = 0;
	struct life *life = lives_of(s, e, n, &all);
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < all; i++)
		if (life[i].freed < first && is_dropped(life, all, i))
			first = life[i].freed;
	for (size_t i = 0; i < all; i++)
		there += life[i].made <= first && life[i].freed >= first;
	free(life);
	return first != UINT64_MAX && n <= 2 * there;
}

static bool has_loop(const struct path *p, uint32_t loop)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->step[i].loop == loop)
			return true;
	return false;
}

static bool is_over(const struct search *s, const struct entry *e)
{
	const struct path *now = waits_for_backward(s, e) ? &s->now_backward : &s->now;

	return !has_loop(now, e->path.step[e->path.n - 1].loop);
}

/* A loop of such a thread that ran out of memory itself: it would have added more. */
static bool was_cut_short(const struct search *s, uint32_t loop)
{
	const struct cw_failure *const *all;
	struct turn turn[CW_LOOP_TURNS];

	for (size_t i = trace_failures(s->trace, &all); i > 0; i--) {
		const struct cw_failure *f = all[i - 1];

		if (f->source != CW_SRC_TORCH_OOM || f->ticks > s->m->when || !is_of_other_thread(s, f->stack))
			continue;
		for (size_t n = turns_of_failure(s->trace, f, turn); n > 0; n--)
			if (turn[n - 1].number == loop)
				return true;
	}
	return false;
}

/* A loop that was over before most of the work was done is no reason: it has loaded a data set. */
static bool is_long_over(const struct search *s, const struct entry *newest)
{
	const struct cw_site *site = kinds_about(s->k, &s->m->torch.list[newest->block])->asked;
	uint64_t first = site && site->first_ticks ? site->first_ticks : newest->ticks;

	return s->m->when != UINT64_MAX && newest->ticks - first < s->m->when - newest->ticks;
}

/* Blocks of several earlier turns, the last of which is not longer ago than the others are apart: what is made once, when it
 * is first needed, is not added in every turn. */
static bool adds(const struct search *s, const struct entry *e, size_t n, size_t *turns)
{
	const struct path *now = waits_for_backward(s, e) ? &s->now_backward : &s->now, *last = &e[n - 1].path;
	uint32_t apart = 1;

	*turns = 1;
	for (size_t i = 1; i < n; i++) {
		uint32_t between = path_turns_between(&e[i - 1].path, &e[i].path);

		if (path_order(&e[i - 1].path, &e[i].path) == 0)
			continue;
		apart = between > apart ? between : apart;
		++*turns;
	}
	if (*turns < 2 || path_turns_between(last, now) > 2 * apart)
		return false;
	if (is_over(s, &e[n - 1]) && is_long_over(s, &e[n - 1]) && !was_cut_short(s, last->step[last->n - 1].loop))
		return false;
	return !drops(s, e, n);
}

/* What a user's line has, of all stacks that end there. */
struct tally { struct place place; uint64_t bytes, blocks; size_t turns; };
struct tallies { struct tally *list; size_t n; };

static struct tally *tally_of(struct tallies *t, const struct place *place)
{
	size_t i = 0;

	while (i < t->n && !place_same(&t->list[i].place, place))
		i++;
	if (i == t->n)
		t->list[t->n++] = (struct tally){.place = *place};
	return &t->list[i];
}

static uint32_t call_of_model(const struct trace *t, const struct cw_stack *s)
{
	static const char *const modules[] = {"torch/nn/modules/module.py", NULL};

	return stack_outermost_of(t, s, modules);
}

/* Did these lines ever allocate anything? Views do not. */
static bool allocates(const struct search *s, uint64_t lines)
{
	for (size_t i = 1; i < s->k->n; i++)
		if (s->k->site[i].kind == CW_MEM_TORCH && lines_hash(s->trace, s->k->site[i].stack) == lines)
			return true;
	return false;
}

/* Is what these lines make the result of the model? Then the nodes that follow are views of it, until one comes from
 * outside of the model. */
static bool is_result(const struct search *s, uint64_t lines)
{
	const struct trace_node *node;
	size_t n = trace_nodes(s->trace, &node);
	uint64_t view = 0;		/* lines that are known to allocate nothing */

	for (size_t i = 0, next; i + 1 < n; i++) {
		if (lines_hash(s->trace, node[i].stack) != lines)
			continue;
		for (next = i + 1; next < n && node[next].tid == node[i].tid; next++) {
			const struct cw_stack *stack = node[next].stack ? trace_stack(s->trace, node[next].stack) : NULL;
			uint64_t other = lines_hash(s->trace, node[next].stack);

			if (stack && call_of_model(s->trace, stack) == stack->n)
				return true;
			if (other != view && allocates(s, other))
				break;
			view = other;
		}
	}
	return false;
}

/* Whoever keeps the result of a model does so where the model is called. */
static struct place keeper_of(const struct search *s, const struct piece *p)
{
	const struct about *a = kinds_about(s->k, p);
	const struct cw_stack *stack = a->place.stack ? trace_stack(s->trace, a->place.stack) : NULL;
	uint32_t call = stack ? call_of_model(s->trace, stack) : 0;
	struct place found = a->place, caller;

	if (stack && call < stack->n && is_result(s, a->lines) && place_outside(s->trace, found.stack, call, &caller))
		found = caller;
	return found;
}

/* The newest tensor of each turn's graph is what was kept; the line that most turns have in common. */
static void find_last(struct search *s, struct entry *kept, size_t n)
{
	struct tallies lines = {xcalloc(n + 1, sizeof(*lines.list)), 0};
	const struct tally *best = NULL;
	const struct entry *of = NULL;

	xsort(kept, n, sizeof(*kept), by_path);
	for (size_t i = 0, end; i < n; i = end) {
		const struct entry *newest = &kept[i];
		struct tally *line;

		for (end = i; end < n && !by_path(&kept[i], &kept[end]); end++)
			newest = kept[end].ticks > newest->ticks ? &kept[end] : newest;
		line = tally_of(&lines, &kinds_about(s->k, &s->m->torch.list[newest->block])->place);
		line->turns++;
		if (!best || line->turns > best->turns) {
			best = line;
			of = newest;
		}
	}
	if (of)
		s->out->last = keeper_of(s, &s->m->torch.list[of->block]);
	free(lines.list);
}

/* The blocks of one stack of lines, from `first` to `end`; `turns` 1: of one try. `released`: once an activation, but its graph has gone. */
struct pile { size_t first, end, turns; bool released; };

static void left_add(struct search *s, struct left *l, struct tallies *lines, const struct entry *e, const struct pile *p)
{
	struct tally *line = tally_of(lines, &kinds_about(s->k, &s->m->torch.list[e[p->first].block])->place);

	for (size_t i = p->first; i < p->end; i++) {
		uint64_t size = s->m->torch.list[e[i].block].size;

		line->bytes += size;
		l->bytes += size;
		l->gone[e[i].block] = true;
		s->out->exact &= e[i].path.exact;
	}
	line->blocks += p->end - p->first;
	l->blocks += p->end - p->first;
	line->turns = p->turns > line->turns ? p->turns : line->turns;
	if (line->bytes > l->most_bytes) {
		l->most = line->place;
		l->most_bytes = line->bytes;
		l->most_blocks = line->blocks;
		l->turns = line->turns;
		l->over = p->turns > 1 && is_over(s, &e[p->end - 1]);
	}
}

/* The innermost loop around these blocks; 0 = only a function that calls itself. */
static uint32_t loop_of(const struct entry *e)
{
	for (uint32_t i = e->path.n; i > 0; i--)
		if (!(e->path.step[i - 1].loop & RECURSION))
			return e->path.step[i - 1].loop;
	return 0;
}

/* Before a program works with a model, a loop that lets nothing go of all that it allocates, and wanted more of the same, builds
 * something: a table, a cache, a data set on the GPU. All of that is needed, for all that we know. */
static bool only_builds(const struct search *s, const struct entry *all, size_t n, const struct entry *e)
{
	uint32_t loop = loop_of(e);
	bool more = false;

	if (e->graph || !loop || s->loops.any_model || s->loops.any_backward ||
	    trace_header(s->trace)->minor < 6)	/* frees had no turns before */
		return false;
	for (size_t i = 0; i < s->n_went; i++)
		if (has_loop(&s->went[i].path, loop))
			return false;
	for (size_t i = 0; i < n && !more; i++)
		more = all[i].lines == s->failed && has_loop(&all[i].path, loop);
	return more;
}

static size_t find_piles(struct search *s, struct entry *e, size_t n, struct pile *pile)
{
	size_t piles = 0;

	xsort(e, n, sizeof(*e), by_lines_and_path);
	for (size_t i = 0, end, turns; i < n; i = end) {
		for (end = i; end < n && e[end].lines == e[i].lines && e[end].graph == e[i].graph; end++)
			;
		if (!adds(s, e + i, end - i, &turns))
			continue;
		if (only_builds(s, e, n, &e[i]))
			for (size_t k = i; k < end; k++)
				s->out->built += s->m->torch.list[e[k].block].size;
		else
			pile[piles++] = (struct pile){i, end, turns, e[i].graph && nodes_let_go(s, e[i].lines, turns)};
	}
	return piles;
}

/* A graph keeps its inputs, too. Whether these do not stay for a reason of their own is not known. `graph` is sorted by path. */
static bool may_be_input(const struct entry *graph, size_t n, const struct entry *e, const struct pile *p)
{
	size_t with = 0;

	for (size_t i = p->first; i < p->end; i++)
		with += n && bsearch(&e[i], graph, n, sizeof(*graph), by_path) != NULL;
	return 2 * with >= p->end - p->first;
}

static enum ledger_kind kind_of_entry(const struct search *s, const struct entry *e)
{
	return kinds_of(s->k, &s->m->torch.list[e->block]);
}

static bool is_part_of_model(enum ledger_kind kind)
{
	return kind == KIND_PARAMETERS || kind == KIND_GRADIENTS || kind == KIND_OPTIMIZER;
}

static uint64_t bytes_of_kind(const struct search *s, enum ledger_kind kind)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->m->torch.n; i++)
		sum += kinds_of(s->k, &s->m->torch.list[i]) == kind ? s->m->torch.list[i].size : 0;
	return sum;
}

/* Do turns that work with a model leave one each, as trials in a search do? A loop that builds the layers of a model does not work
 * with it. */
static bool leaves_models(struct search *s, const struct entry *e, size_t n)
{
	struct entry *part = xcalloc(n + 1, sizeof(*part));
	struct pile *pile = xcalloc(n + 1, sizeof(*pile));
	size_t parts = 0, piles;
	bool found = false;

	for (size_t i = 0; i < n; i++)
		if (kind_of_entry(s, &e[i]) == KIND_PARAMETERS)
			part[parts++] = e[i];
	piles = find_piles(s, part, parts, pile);
	for (size_t i = 0; i < piles && !found; i++) {
		const struct path *p = &part[pile[i].first].path;
		uint32_t loop = p->step[p->n - 1].loop;

		found = !(loop & RECURSION) && loop < s->loops.n && s->loops.is[loop] & LOOP_AROUND_MODEL;
	}
	free(part);
	free(pile);
	return found;
}

/* Most bytes that a line of an optimizer keeps for each byte of the parameters: one element for each of theirs, of 8 bytes at
 * most where theirs have 2 at least. */
#define STATE_OF_PARAMETER 4

/* More of an optimizer's state than the parameters can need: it was made for them anew, and the old one is still kept. `e` is
 * sorted by lines. */
static bool is_made_again(const struct search *s, const struct entry *e, size_t n, uint64_t parameters)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n && e[i].lines == e[0].lines; i++)
		bytes += s->m->torch.list[e[i].block].size;
	return parameters && bytes / STATE_OF_PARAMETER > parameters;
}

/* Parameters, their gradients and what an optimizer knows of them are made once for each: those of layers that are trained from
 * some turn on, later. More gradients than parameters are kept for another reason. Returns how many entries are left. */
static size_t drop_parts_of_models(struct search *s, struct entry *e, size_t n)
{
	uint64_t parameters = bytes_of_kind(s, KIND_PARAMETERS);
	bool grads = bytes_of_kind(s, KIND_GRADIENTS) > parameters, again = false;
	size_t left = 0;

	if (leaves_models(s, e, n))
		return n;
	xsort(e, n, sizeof(*e), by_lines_and_path);
	for (size_t i = 0; i < n; i++) {
		enum ledger_kind kind = kind_of_entry(s, &e[i]);

		if (!i || e[i].lines != e[i - 1].lines)
			again = kind == KIND_OPTIMIZER && is_made_again(s, e + i, n - i, parameters);
		if (again)
			s->out->exact = false;	/* some optimizers keep a history, which is full one day */
		if (!is_part_of_model(kind) || (grads && kind == KIND_GRADIENTS) || (again && kind == KIND_OPTIMIZER))
			e[left++] = e[i];
	}
	return left;
}

/* Backward frees what it has used. What stays of lines that it runs is a graph only if that was retained, which recordings before 2.8
 * do not say; it may as well be a tensor that somebody detached and keeps. */
static bool mostly_run(const struct search *s, const struct entry *kept, size_t n)
{
	uint64_t run = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t size = s->m->torch.list[kept[i].block].size;

		all += size;
		run += bsearch(&kept[i].lines, s->run, s->n_run, sizeof(*s->run), by_number) ? size : 0;
	}
	return run > all / 2;
}

/* A try that is over: it ran out of memory, and the same function, or the loop in it, went on. */
struct try {
	const struct cw_stack *stack;
	uint32_t outer;			/* how many of its outermost frames lead to what it called */
	struct path path;		/* of the loops in these frames */
	uint64_t ticks;
};

/* How many outermost frames two stacks have in common, line for line. */
static uint32_t common_frames(const struct trace *t, const struct cw_stack *a, const struct cw_stack *b)
{
	uint32_t i = 0;

	while (i < a->n && i < b->n && frame_same_function(t, stack_outer_frame(a, i), stack_outer_frame(b, i)) &&
	       stack_outer_frame(a, i)->line == stack_outer_frame(b, i)->line)
		i++;
	return i;
}

/* The innermost of its frames that is the loop's function, counted from 1 at the outermost; 0 = none. */
static uint32_t frame_of_loop(const struct search *s, const struct cw_stack *stack, uint32_t number)
{
	size_t len;
	const struct cw_loop *loop = trace_chunk(s->trace, CW_CHUNK_LOOPS, &len);
	uint32_t found = 0;

	for (uint32_t i = 0; number < len / sizeof(*loop) && i < stack->n; i++)
		found = frame_same_function(s->trace, stack_outer_frame(stack, i), &loop[number].frame) ? i + 1 : found;
	return found;
}

/* Is the program somewhere else now in the function that called what failed? Then the call is over. A loop that came to the same
 * line again has turned: there, the call from the function of the loop is over. 0 = neither. */
static uint32_t frames_of_try(const struct search *s, const struct try *x, const struct cw_stack *now)
{
	uint32_t common = common_frames(s->trace, x->stack, now), turned = 0;
	const struct cw_frame *was = stack_outer_frame(x->stack, common), *is = stack_outer_frame(now, common);

	if (was && is && frame_same_function(s->trace, was, is))
		return common + 1;
	while (turned < x->path.n && turned < s->now.n &&
	       !memcmp(&x->path.step[turned], &s->now.step[turned], sizeof(struct step)))
		turned++;
	return turned < x->path.n ? frame_of_loop(s, x->stack, x->path.step[turned].loop) : 0;
}

/* Loops inside of what the try called are its own. */
static void drop_inner_loops(const struct search *s, struct try *x)
{
	uint32_t n = 0;

	while (n < x->path.n) {
		uint32_t frame = frame_of_loop(s, x->stack, x->path.step[n].loop);

		if (!frame || frame > x->outer)
			break;
		n++;
	}
	x->path.n = n;
}

static bool try_of(struct search *s, struct try *x, const struct cw_failure *f, const struct cw_failure *now)
{
	uint32_t stack = f->stack ? f->stack : f->forward_stack, here = now->stack ? now->stack : now->forward_stack;
	const struct cw_stack *is = here ? trace_stack(s->trace, here) : NULL;
	struct turn turn[CW_LOOP_TURNS];

	*x = (struct try){.stack = stack ? trace_stack(s->trace, stack) : NULL, .ticks = f->ticks};
	if (f->source != CW_SRC_TORCH_OOM || f->ticks >= now->ticks || f->device != s->m->device || !x->stack || !is)
		return false;
	path_of_turns(&x->path, s->trace, &s->loops, turn, turns_at_failure(s->trace, f, turn),
		      s->loops.any_model ? LOOP_AROUND_MODEL : 0);
	x->outer = frames_of_try(s, x, is);
	drop_inner_loops(s, x);
	return x->outer > 0;
}

static bool is_of_try(struct search *s, const struct try *x, const struct piece *p)
{
	const struct cw_stack *stack = p->stack && p->ticks <= x->ticks ? trace_stack(s->trace, p->stack) : NULL;
	enum ledger_kind kind;
	struct turn turn[CW_LOOP_TURNS];
	struct path path;

	if (!stack || common_frames(s->trace, stack, x->stack) < x->outer)
		return false;
	kind = kinds_of(s->k, p);
	path_of_turns(&path, s->trace, &s->loops, turn, turns_of_piece(s->trace, p, turn),
		      s->loops.any_model ? LOOP_AROUND_MODEL : 0);
	return (kind == KIND_ACTIVATIONS || kind == KIND_OTHER) && path.n >= x->path.n &&
	       !memcmp(path.step, x->path.step, x->path.n * sizeof(path.step[0]));
}

/* Where the call that failed was made: the innermost of the frames that lead to it. */
static struct place place_of_try(const struct search *s, const struct try *x, uint32_t stack)
{
	struct place found = {0};

	if (!place_outside(s->trace, stack, x->stack->n - x->outer - 1, &found))
		place_of_stack(s->trace, stack, &found);
	return found;
}

/* What the try left that no pile has yet: a graph keeps its inputs, too. */
static void add_try(struct search *s, const struct try *x, struct tallies *lines)
{
	size_t *block = xcalloc(s->m->torch.n + 1, sizeof(*block)), n = 0;
	bool graph = false;

	for (size_t i = 0; i < s->m->torch.n; i++) {
		const struct piece *p = &s->m->torch.list[i];

		if (s->out->graphs.gone[i] || s->out->tensors.gone[i] || !is_of_try(s, x, p))
			continue;
		graph |= kinds_of(s->k, p) == KIND_ACTIVATIONS;
		block[n++] = i;
	}
	for (size_t i = 0; i < n; i++) {
		left_add(s, graph ? &s->out->graphs : &s->out->tensors, &lines[graph],
			 &(struct entry){.block = block[i]}, &(struct pile){0, 1, 1, false});
		s->out->tried += s->m->torch.list[block[i]].size;
	}
	free(block);
}

static void add_tries(struct search *s, const struct cw_failure *now, struct tallies *lines)
{
	const struct cw_failure *const *all;
	size_t n = trace_failures(s->trace, &all);
	struct try x;

	for (size_t i = 0; i < n && s->out->known; i++) {
		uint64_t before = s->out->tried;

		if (!try_of(s, &x, all[i], now))
			continue;
		add_try(s, &x, lines);
		if (s->out->tried > before)
			s->out->try = place_of_try(s, &x, all[i]->stack ? all[i]->stack : all[i]->forward_stack);
	}
	if (s->out->tried)	/* it may have left what it was meant to leave */
		s->out->exact = false;
}

/* Where backward frees graphs, one tensor a turn and nothing else is none: a graph would have kept what its operations need, too.
 * Detaching it frees nothing. */
static bool is_result_alone(const struct search *s, const struct pile *p)
{
	return s->n_run && p->end - p->first <= p->turns;
}

static void sort_out(struct search *s, struct entry *e, size_t n, const struct cw_failure *f)
{
	struct entry *graph = xcalloc(n + 1, sizeof(*graph)), *activation = xcalloc(n + 1, sizeof(*activation));
	struct pile *pile = xcalloc(n + 1, sizeof(*pile));
	struct tallies lines[2] = {{xcalloc(s->m->torch.n + 1, sizeof(struct tally)), 0},
				   {xcalloc(s->m->torch.n + 1, sizeof(struct tally)), 0}};
	size_t piles = find_piles(s, e, n, pile), n_graph = 0, n_activations = 0;
	uint64_t inputs = 0;
	struct gone known;
	bool gone;

	for (size_t i = 0; i < piles; i++)
		for (size_t k = pile[i].first; k < pile[i].end && e[k].graph; k++) {
			activation[n_activations++] = e[k];
			if (!pile[i].released)
				graph[n_graph++] = e[k];
		}
	known = graphs_are_gone(s, activation, n_activations);
	gone = !n_graph || known.is || (piles == 1 && is_result_alone(s, &pile[0]));
	xsort(graph, n_graph, sizeof(*graph), by_path);
	for (size_t i = 0; i < piles; i++) {
		bool is_graph = e[pile[i].first].graph && !pile[i].released;
		bool of_graph = !gone && (is_graph || may_be_input(graph, n_graph, e, &pile[i]));

		left_add(s, of_graph ? &s->out->graphs : &s->out->tensors, &lines[of_graph], e, &pile[i]);
		for (size_t k = pile[i].first; of_graph && !is_graph && k < pile[i].end; k++)
			inputs += s->m->torch.list[e[k].block].size;
		if (pile[i].released && !known.by_frees)	/* unless it is an attribute of a function of the user's, which its node keeps */
			s->out->exact = false;
	}
	if (inputs > s->out->graphs.bytes / 2)
		s->out->exact = false;
	if (!s->loops.any_model && !s->loops.any_backward)	/* it may build something that it needs */
		s->out->exact = false;
	if (!gone)
		find_last(s, graph, n_graph);
	if (!gone && mostly_run(s, graph, n_graph))
		s->out->exact = false;
	add_tries(s, f, lines);
	free(graph);
	free(activation);
	free(pile);
	free(lines[0].list);
	free(lines[1].list);
}

/* The most that one stack of lines allocated at once in a turn. */
struct size_in_turn { uint64_t lines; struct path path; uint64_t size; };

static int by_size_in_turn(const void *a, const void *b)
{
	const struct size_in_turn *x = a, *y = b;
	int c = x->lines < y->lines ? -1 : x->lines > y->lines;

	c = c ? c : path_order(&x->path, &y->path);
	return c ? c : x->size < y->size ? 1 : x->size > y->size ? -1 : 0;
}

/* Of earlier turns, kept and freed alike; one for each turn and stack of lines, sorted. */
static size_t sizes_in_turns(const struct search *s, const struct entry *kept, size_t n, struct size_in_turn *sizes)
{
	size_t all = 0, left = 0;

	for (size_t i = 0; i < n; i++)
		sizes[all++] = (struct size_in_turn){kept[i].lines, kept[i].path, s->m->torch.list[kept[i].block].size};
	for (size_t i = 0; i < s->n_went; i++)
		sizes[all++] = (struct size_in_turn){s->went[i].lines, s->went[i].path, s->freed[s->went[i].block]->size};
	xsort(sizes, all, sizeof(*sizes), by_size_in_turn);
	for (size_t i = 0; i < all; i++)
		if (!left || sizes[left - 1].lines != sizes[i].lines ||
		    path_order(&sizes[left - 1].path, &sizes[i].path) != 0)
			sizes[left++] = sizes[i];
	return left;
}

#define GROWN_TURNS 3		/* two sizes always differ in some direction */
#define GROWN_STEPS 3		/* up, where it also stays the same: several take turns at growing */

/* `request`: what the line `lines` asked for when memory ran out. */
static void find_grown(struct search *s, const struct entry *kept, size_t n, uint64_t lines, uint64_t request)
{
	struct size_in_turn *sizes = xcalloc(n + s->n_went + 1, sizeof(*sizes));
	size_t all = sizes_in_turns(s, kept, n, sizes), steady = 0, growing = 0;

	for (size_t i = 0, end; i < all; i = end) {
		bool up = true, same = true, down = false;
		size_t steps = 0;

		for (end = i + 1; end < all && sizes[end].lines == sizes[i].lines; end++) {
			up &= sizes[end].size > sizes[end - 1].size;
			steps += sizes[end].size > sizes[end - 1].size;
			down |= sizes[end].size < sizes[end - 1].size;
			same &= sizes[end].size == sizes[end - 1].size;
		}
		if (end - i < GROWN_TURNS)
			continue;
		up |= steps >= GROWN_STEPS && !down;
		growing += up;
		steady += same;
		if (up && sizes[i].lines == lines && request >= sizes[end - 1].size && request > sizes[i].size)
			s->out->grown = (struct grown){.turns = end - i, .first = sizes[i].size};
	}
	s->out->grown.alone = steady >= growing;
	free(sizes);
}

/* A block in some turns of all its loops. `record`: of the innermost; a loop that begins anew has another one. */
struct in_turns { uint64_t lines, turns, size; uint32_t record; };

static int by_lines_turns_and_record(const void *a, const void *b)
{
	const struct in_turns *x = a, *y = b;

	if (x->lines != y->lines)
		return x->lines < y->lines ? -1 : 1;
	if (x->turns != y->turns)
		return x->turns < y->turns ? -1 : 1;
	return x->record < y->record ? -1 : x->record > y->record;
}

/* Where calls repeat inside a library, the same stack came again, and which of its callers did that is not known. */
static uint64_t hash_turns(const struct turn *turn, size_t n)
{
	uint64_t h = 0;

	for (size_t i = 0; i < n; i++)
		if (!(turn[i].calls && turn[i].loop.library))
			h = (h ^ ((uint64_t)turn[i].number << 32 | turn[i].turn)) * 0x9e3779b97f4a7c15ull;
	return h;
}

/* Of blocks of one line in the same turns of the same loops, all but those of the run that has the most. */
static uint64_t bytes_of_other_runs(const struct in_turns *b, size_t n)
{
	uint64_t all = 0, most = 0, one = 0;

	for (size_t i = 0; i < n; i++) {
		one = i && b[i].record == b[i - 1].record ? one + b[i].size : b[i].size;
		most = one > most ? one : most;
		all += b[i].size;
	}
	return all - most;
}

/* Turn 3 of a loop comes once in each run of the loop. If it has come several times and no loop around it has turned, then
 * something has run it again that was not seen; and so, perhaps, a line in no loop that has several tensors. */
static uint64_t bytes_run_again(const struct search *s)
{
	struct in_turns *b = xcalloc(s->m->torch.n + 1, sizeof(*b));
	struct turn turn[CW_LOOP_TURNS];
	uint64_t bytes = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->m->torch.n; i++) {
		const struct piece *p = &s->m->torch.list[i];
		size_t turns = turns_of_piece(s->trace, p, turn);

		if (!is_part_of_model(kinds_of(s->k, p)))	/* in no loop, each is one of its own */
			b[n++] = (struct in_turns){kinds_about(s->k, p)->lines, hash_turns(turn, turns), p->size,
						   turns ? p->turn : (uint32_t)i};
	}
	xsort(b, n, sizeof(*b), by_lines_turns_and_record);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && b[end].lines == b[i].lines && b[end].turns == b[i].turns; end++)
			;
		bytes += bytes_of_other_runs(b + i, end - i);
	}
	free(b);
	return bytes;
}

void leftovers_find(struct leftovers *l, struct trace *t, const struct moment *m, struct kinds *k,
		    const struct cw_failure *f, struct pool *pool)
{
	struct search s = {.out = l,
			   .trace = t,
			   .m = m,
			   .k = k,
			   .in_backward = failure_in_backward(t, f),
			   .failed = lines_hash(t, f->stack)};
	struct entry *e = xcalloc(m->torch.n + 1, sizeof(*e));
	struct turn turn[CW_LOOP_TURNS];
	uint32_t failed = f->stack ? f->stack : f->forward_stack;
	size_t n, entries = 0, len;

	*l = (struct leftovers){.known = trace_chunk(t, CW_CHUNK_LOOPS, &len) && trace_chunk(t, CW_CHUNK_TURNS, &len),
				.exact = !trace_header(t)->lost_turns};
	l->graphs.gone = pool_alloc(pool, m->torch.n + 1);
	l->tensors.gone = pool_alloc(pool, m->torch.n + 1);
	loops_find(&s.loops, t, m);
	find_nodes(&s);
	n = turns_at_failure(t, f, turn);
	path_of_turns(&s.now, t, &s.loops, turn, n,
		      s.loops.any_model && (s.in_backward || !is_of_other_thread(&s, failed)) ? LOOP_AROUND_MODEL : 0);
	path_of_turns(&s.now_backward, t, &s.loops, turn, n, LOOP_AROUND_BACKWARD);
	path_add_recursion(&s.now, t, failed);
	path_add_recursion(&s.now_backward, t, failed);
	l->in_loop = s.now.n > 0;
	for (uint32_t i = 0; i < s.now.n; i++)
		l->turned |= s.now.step[i].turn > 1;
	for (size_t i = 0; l->known && i < m->torch.n; i++)
		if (entry_of(&s, &e[entries], &m->torch.list[i]))
			e[entries++].block = i;
	find_went(&s);
	find_grown(&s, e, entries, s.failed, f->request_bytes);
	entries = drop_parts_of_models(&s, e, entries);
	sort_out(&s, e, entries, f);
	l->run_again = bytes_run_again(&s);
	free(e);
	free(s.went);
	free(s.run);
	free(s.node);
	free(s.loops.is);
}
