/* SPDX-License-Identifier: Apache-2.0
 * What earlier turns of the program's loops have left behind (see leftovers.h).
 */
#include "input/recording/leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/str.h"
#include "input/recording/place.h"
#include "input/recording/trace_memory.h"
#include "input/recording/turns.h"

/* ---- loops --------------------------------------------------------------------------------------------------------- */

/* What is known of a loop, by its number. */
enum { LOOP_AROUND_MODEL = 1, LOOP_AROUND_BACKWARD = 2, LOOP_IN_MODEL = 4 };
struct loops {
	uint8_t *is;
	size_t n;
	bool any_model, any_backward;
};

/* Modules are called by this file, which also moves them to a device. */
static bool is_moved(const struct trace *t, const struct cw_frame *f)
{
	return strstr(trace_string(t, f->file), "torch/nn/modules/module.py") &&
	       !strstr(trace_string(t, f->function), "call");
}

/* Index of the outermost frame of one of these files; the number of frames if there is none. */
static uint32_t outermost_of(const struct trace *t, const struct cw_stack *s, const char *const *parts)
{
	for (uint32_t i = s->n; i > 0; i--)
		for (size_t k = 0; parts[k]; k++)
			if (strstr(trace_string(t, s->frame[i - 1].file), parts[k]) && !is_moved(t, &s->frame[i - 1]))
				return i - 1;
	return s->n;
}

static bool in_function(const struct trace *t, const struct cw_frame *f, const struct place *loop)
{
	return f->first_line == loop->first_line && !strcmp(trace_string(t, f->file), loop->file) &&
	       !strcmp(trace_string(t, f->function), loop->function);
}

/* Is the function of the loop on the stack, outside of the frame `inner`? */
static bool is_outside(const struct trace *t, const struct cw_stack *s, const struct place *loop, uint32_t inner)
{
	for (uint32_t i = inner < s->n ? inner + 1 : 0; i < s->n; i++)
		if (in_function(t, &s->frame[i], loop))
			return true;
	return false;
}

static bool is_torch(const struct trace *t, const struct turn *turn)
{
	return frame_owner(turn->loop.file, trace_header(t)->torch_path) == OWNER_TORCH;
}

/* Work of a model is called by a module, by backward or by an optimizer. */
static void loops_note(struct loops *l, const struct trace *t, uint32_t stack, const struct turn *turn, size_t n)
{
	static const char *const model[] = {"torch/nn/modules/module.py", "torch/autograd/", "torch/optim/",
					    "torch/_tensor.py", NULL};
	static const char *const backward[] = {"torch/autograd/", "torch/_tensor.py", NULL};
	const struct cw_stack *s = stack && n ? trace_stack(t, stack) : NULL;
	uint32_t at_model, at_backward;

	if (!s)
		return;
	at_model = outermost_of(t, s, model);
	at_backward = stack_in_backward(t, stack) ? outermost_of(t, s, backward) : s->n;
	for (size_t i = 0; i < n; i++) {
		if (turn[i].number >= l->n || is_torch(t, &turn[i]))
			continue;
		if (at_model < s->n)
			l->is[turn[i].number] |=
				is_outside(t, s, &turn[i].loop, at_model) ? LOOP_AROUND_MODEL : LOOP_IN_MODEL;
		if (at_backward < s->n && is_outside(t, s, &turn[i].loop, at_backward))
			l->is[turn[i].number] |= LOOP_AROUND_BACKWARD;
	}
}

static void loops_find(struct loops *l, struct trace *t, const struct moment *m)
{
	const struct cw_launch *const *launch;
	struct turn turn[CW_LOOP_TURNS];
	uint32_t stack = 0;
	size_t len;

	(void)trace_chunk(t, CW_CHUNK_LOOPS, &len);
	*l = (struct loops){.n = len / sizeof(struct cw_loop)};
	l->is = xcalloc(l->n + 1, sizeof(*l->is));
	for (size_t i = 0; i < m->torch.n; i++)
		loops_note(l, t, m->torch.list[i].stack, turn, turns_of_piece(t, &m->torch.list[i], turn));
	for (size_t i = trace_launches(t, &launch); i > 0; i--) {
		if (launch[i - 1]->stack != stack)	/* many in a row have the same */
			loops_note(l, t, launch[i - 1]->stack, turn, turns_of_launch(t, launch[i - 1], turn));
		stack = launch[i - 1]->stack;
	}
	for (size_t i = 0; i < l->n; i++) {
		l->any_model |= l->is[i] & LOOP_AROUND_MODEL;
		l->any_backward |= l->is[i] & LOOP_AROUND_BACKWARD;
	}
}

/* ---- paths: the turns of the loops that count, outermost first ------------------------------------------------------- */

struct step { uint32_t loop, turn; };
struct path {
	struct step step[CW_LOOP_TURNS];
	uint32_t n;
	bool exact;
};

#define RECURSION 0x80000000u	/* not a loop's number, but a string's: the file of a function that calls itself */

/* A function of the user's that calls itself is a loop, too: each call is a turn. */
static void add_recursion(struct path *p, const struct trace *t, uint32_t stack)
{
	static const char *const modules[] = {"torch/nn/modules/module.py", NULL};
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	uint32_t inner = s ? outermost_of(t, s, modules) : 0, times;

	for (uint32_t i = s && inner < s->n ? inner + 1 : 0; s && i < s->n && p->n < CW_LOOP_TURNS; i += times) {
		for (times = 1; i + times < s->n && s->frame[i + times].file == s->frame[i].file &&
				s->frame[i + times].line == s->frame[i].line;
		     times++)
			;
		if (times == 1 || stack_owner(t, s, i) != OWNER_USER)
			continue;
		p->step[p->n++] = (struct step){RECURSION | s->frame[i].file, times};
		p->exact &= !(s->flags & CW_STACK_CUT);
	}
}

/* `want` 0: no loop of the program calls a model; then the outermost that is not in one must do, because the others may be over
 * the layers of a model without modules. */
static void path_of_turns(struct path *p, const struct trace *t, const struct loops *l, const struct turn *turn,
			  size_t n, uint8_t want)
{
	*p = (struct path){.exact = true};
	for (size_t i = n; i > 0; i--) {
		const struct turn *x = &turn[i - 1];

		if (x->number >= l->n || is_torch(t, x) ||
		    (want ? !(l->is[x->number] & want) : p->n > 0 || l->is[x->number] & LOOP_IN_MODEL))
			continue;
		p->step[p->n++] = (struct step){x->number, x->turn};
		p->exact &= x->exact;
	}
}

static int path_order(const struct path *a, const struct path *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++) {
		const struct step *x = &a->step[i], *y = &b->step[i];

		if (x->loop != y->loop)
			return x->loop < y->loop ? -1 : 1;
		if (x->turn != y->turn)
			return x->turn < y->turn ? -1 : 1;
	}
	return a->n < b->n ? -1 : a->n > b->n;
}

/* How many turns of the innermost loop `b` is after `a`; 1 if the loops around it have turned, too. */
static uint32_t turns_between(const struct path *a, const struct path *b)
{
	uint32_t last = a->n - 1;

	if (!a->n || a->n != b->n || memcmp(a->step, b->step, last * sizeof(a->step[0])) != 0 ||
	    a->step[last].loop != b->step[last].loop || b->step[last].turn <= a->step[last].turn)
		return 1;
	return b->step[last].turn - a->step[last].turn;
}

/* Is the block of the turn that `now` is in? Of a loop that is over, all turns are earlier ones. */
static bool is_now(const struct path *block, const struct path *now)
{
	return block->n <= now->n && (!block->n || !memcmp(block->step, now->step, block->n * sizeof(block->step[0])));
}

/* A thread of PyTorch's backward has no frames and is in no loop: the one that waits for it has and is, since its last
 * launch. */
static size_t turns_at_failure(struct trace *t, const struct cw_failure *f, struct turn *turn)
{
	const struct cw_launch *const *launch;
	size_t n = turns_of_failure(t, f, turn);

	for (size_t i = n || f->stack ? 0 : trace_launches(t, &launch); i > 0 && !n; i--)
		if (launch[i - 1]->ticks <= f->ticks)
			n = turns_of_launch(t, launch[i - 1], turn);
	return n;
}

/* ---- piles: the blocks of one stack of lines -------------------------------------------------------------------------- */

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

struct search {
	struct leftovers *out;
	struct trace *trace;
	const struct moment *m;
	struct kinds *k;
	struct loops loops;
	struct path now, now_backward;	/* the failure's, by all loops that count, and by those around backward */
	uint64_t *run;			/* lines_hash of nodes that backward ran, sorted */
	size_t n_run;
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

static void find_run(struct search *s)
{
	const struct trace_node *node;
	size_t n = trace_nodes(s->trace, &node);

	s->run = xcalloc(n + 1, sizeof(*s->run));
	for (size_t i = 0; i < n; i++)
		if (node[i].has_run)
			s->run[s->n_run++] = lines_hash(s->trace, node[i].stack);
	qsort(s->run, s->n_run, sizeof(*s->run), by_number);
}

/* Activations wait for backward: where that runs, a turn of its loop is what frees them, however many turns of inner loops
 * (over time steps, over parts of a batch) it takes to make them. */
static bool waits_for_backward(const struct search *s, const struct entry *e)
{
	return e->graph && s->loops.any_backward &&
	       (s->in_backward || (s->n_run && bsearch(&e->lines, s->run, s->n_run, sizeof(*s->run), by_number)));
}

static bool entry_of(struct search *s, struct entry *e, const struct piece *p)
{
	uint8_t all = s->loops.any_model ? LOOP_AROUND_MODEL : 0;
	struct turn turn[CW_LOOP_TURNS];
	size_t n = turns_of_piece(s->trace, p, turn);
	bool backward;

	*e = (struct entry){.lines = kinds_about(s->k, p)->lines, .ticks = p->ticks, .graph = kinds_of(s->k, p) == KIND_ACTIVATIONS};
	backward = waits_for_backward(s, e);
	path_of_turns(&e->path, s->trace, &s->loops, turn, n, backward ? LOOP_AROUND_BACKWARD : all);
	add_recursion(&e->path, s->trace, p->stack ? p->stack : p->forward_stack);
	return e->path.n && !is_now(&e->path, backward ? &s->now_backward : &s->now);
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

/* ---- is the graph still there? --------------------------------------------------------------------------------------- */

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

/* `kept`: activations that stayed, which are sorted by path here. Without a turn whose frees are all known (before 2.6, they had
 * no turns), graphs and tensors that outlived theirs look the same. */
static bool graphs_are_gone(struct search *s, struct entry *kept, size_t n)
{
	size_t frees = trace_freed(s->trace, &s->freed), went_n = 0;
	struct entry *went = xcalloc(s->n_went + 1, sizeof(*went));
	uint64_t stay = 0, left = 0,
		 covered = trace_header(s->trace)->n_blocks_freed > frees && frees ? s->freed[0]->ticks : 0;

	for (size_t i = 0; i < s->n_went; i++)
		if (s->went[i].graph)
			went[went_n++] = s->went[i];
	qsort(kept, n, sizeof(*kept), by_path);
	qsort(went, went_n, sizeof(*went), by_path);
	for (size_t i = 0, end, j = 0; i < n; i = end) {
		uint64_t last = 0, bytes = 0, after = 0;
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
			after += s->freed[went[w].block]->ticks > last ? s->freed[went[w].block]->size : 0;
		stay += bytes;
		left += after;
	}
	free(went);
	if (n && (!stay || trace_header(s->trace)->minor < 6))
		s->out->exact = false;
	return left > stay;
}

/* ---- what adds ---------------------------------------------------------------------------------------------------------- */

/* Lines that drop what they kept for a while: a list of the last few, a buffer that is overwritten. Such a block was freed
 * after two later turns had allocated theirs. */
static bool drops(const struct search *s, const struct entry *e, size_t n)
{
	for (size_t i = 0; i < s->n_went && n; i++) {
		const struct entry *w = &s->went[i];
		size_t later = 0;

		if (w->lines != e->lines || w->graph != e->graph)
			continue;
		for (size_t k = 0; k < n && later < 2; k++)
			later += path_order(&w->path, &e[k].path) < 0 && e[k].ticks <= s->freed[w->block]->ticks &&
				 (!k || path_order(&e[k - 1].path, &e[k].path) != 0);
		if (later == 2)
			return true;
	}
	return false;
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
		uint32_t between = turns_between(&e[i - 1].path, &e[i].path);

		if (path_order(&e[i - 1].path, &e[i].path) == 0)
			continue;
		apart = between > apart ? between : apart;
		++*turns;
	}
	if (*turns < 2 || turns_between(last, now) > 2 * apart)
		return false;
	if (is_over(s, &e[n - 1]) && is_long_over(s, &e[n - 1]))
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

	return outermost_of(t, s, modules);
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

	qsort(kept, n, sizeof(*kept), by_path);
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

/* The blocks of one stack of lines, from `first` to `end`. */
struct pile { size_t first, end, turns; };

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
		l->over = is_over(s, &e[p->end - 1]);
	}
}

static size_t find_piles(struct search *s, struct entry *e, size_t n, struct pile *pile)
{
	size_t piles = 0;

	qsort(e, n, sizeof(*e), by_lines_and_path);
	for (size_t i = 0, end, turns; i < n; i = end) {
		for (end = i; end < n && e[end].lines == e[i].lines && e[end].graph == e[i].graph; end++)
			;
		if (adds(s, e + i, end - i, &turns))
			pile[piles++] = (struct pile){i, end, turns};
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

/* ---- parts of models ------------------------------------------------------------------------------------------------- */

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

/* Parameters, their gradients and what an optimizer knows of them are made once for each: those of layers that are trained from
 * some turn on, later. More gradients than parameters are kept for another reason. Returns how many entries are left. */
static size_t drop_parts_of_models(struct search *s, struct entry *e, size_t n)
{
	bool grads = bytes_of_kind(s, KIND_GRADIENTS) > bytes_of_kind(s, KIND_PARAMETERS);
	size_t left = 0;

	if (leaves_models(s, e, n))
		return n;
	for (size_t i = 0; i < n; i++) {
		enum ledger_kind kind = kind_of_entry(s, &e[i]);

		if (!is_part_of_model(kind) || (grads && kind == KIND_GRADIENTS))
			e[left++] = e[i];
	}
	return left;
}

/* Backward frees what it has used. What stays of lines that it runs is a graph only if that was retained; it may as well be a tensor
 * that somebody detached and keeps. */
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

static void sort_out(struct search *s, struct entry *e, size_t n)
{
	struct entry *graph = xcalloc(n + 1, sizeof(*graph));
	struct pile *pile = xcalloc(n + 1, sizeof(*pile));
	struct tallies lines[2] = {{xcalloc(n + 1, sizeof(struct tally)), 0}, {xcalloc(n + 1, sizeof(struct tally)), 0}};
	size_t piles = find_piles(s, e, n, pile), n_graph = 0;
	uint64_t inputs = 0;
	bool gone;

	for (size_t i = 0; i < piles; i++)
		for (size_t k = pile[i].first; k < pile[i].end && e[k].graph; k++)
			graph[n_graph++] = e[k];
	gone = graphs_are_gone(s, graph, n_graph);
	for (size_t i = 0; i < piles; i++) {
		bool of_graph = !gone && (e[pile[i].first].graph || may_be_input(graph, n_graph, e, &pile[i]));

		left_add(s, of_graph ? &s->out->graphs : &s->out->tensors, &lines[of_graph], e, &pile[i]);
		for (size_t k = pile[i].first; of_graph && k < pile[i].end && !e[k].graph; k++)
			inputs += s->m->torch.list[e[k].block].size;
	}
	if (inputs > s->out->graphs.bytes / 2)
		s->out->exact = false;
	if (!gone)
		find_last(s, graph, n_graph);
	if (!gone && mostly_run(s, graph, n_graph))
		s->out->exact = false;
	free(graph);
	free(pile);
	free(lines[0].list);
	free(lines[1].list);
}

void leftovers_find(struct leftovers *l, struct trace *t, const struct moment *m, struct kinds *k,
		    const struct cw_failure *f, struct pool *pool)
{
	struct search s = {.out = l, .trace = t, .m = m, .k = k, .in_backward = failure_in_backward(t, f)};
	struct entry *e = xcalloc(m->torch.n + 1, sizeof(*e));
	struct turn turn[CW_LOOP_TURNS];
	size_t n, entries = 0, len;

	*l = (struct leftovers){.known = trace_chunk(t, CW_CHUNK_LOOPS, &len) && trace_chunk(t, CW_CHUNK_TURNS, &len),
				.exact = !trace_header(t)->lost_turns};
	l->graphs.gone = pool_alloc(pool, m->torch.n + 1);
	l->tensors.gone = pool_alloc(pool, m->torch.n + 1);
	loops_find(&s.loops, t, m);
	find_run(&s);
	n = turns_at_failure(t, f, turn);
	path_of_turns(&s.now, t, &s.loops, turn, n, s.loops.any_model ? LOOP_AROUND_MODEL : 0);
	path_of_turns(&s.now_backward, t, &s.loops, turn, n, LOOP_AROUND_BACKWARD);
	add_recursion(&s.now, t, f->stack ? f->stack : f->forward_stack);
	add_recursion(&s.now_backward, t, f->stack ? f->stack : f->forward_stack);
	l->in_loop = s.now.n > 0;
	for (uint32_t i = 0; i < s.now.n; i++)
		l->turned |= s.now.step[i].turn > 1;
	for (size_t i = 0; l->known && i < m->torch.n; i++)
		if (entry_of(&s, &e[entries], &m->torch.list[i]))
			e[entries++].block = i;
	find_went(&s);
	entries = drop_parts_of_models(&s, e, entries);
	sort_out(&s, e, entries);
	free(e);
	free(s.went);
	free(s.run);
	free(s.loops.is);
}
