/* SPDX-License-Identifier: Apache-2.0
 * What earlier turns of the program's loops have left behind (see leftovers.h): the blocks of one stack of lines that every turn adds to.
 */
#include "find/memory/leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "find/memory/leftovers_parts.h"

static int by_lines_and_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = x->lines < y->lines ? -1 : x->lines > y->lines;

	c = c ? c : x->graph - y->graph;
	c = c ? c : path_order(&x->path, &y->path);
	return c ? c : x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

int entry_by_path(const void *a, const void *b)
{
	return path_order(&((const struct entry *)a)->path, &((const struct entry *)b)->path);
}

/* Does this thread have nothing to do with the model? It may load its data, for instance. */
static bool is_of_other_thread(const struct search *s, uint32_t stack)
{
	const struct cw_stack *x = stack ? trace_stack(s->trace, stack) : NULL;

	return x && s->loops.worker && !s->loops.workers && stacks_begin_apart(s->trace, x, s->loops.worker);
}

/* Was it allocated in a turn, and in an earlier one? */
static bool entry_of(struct search *s, struct entry *e, const struct piece *p)
{
	uint8_t all = s->loops.any_model ? LOOP_AROUND_MODEL : 0;
	struct turn turn[CW_LOOP_TURNS];
	size_t n = turns_of_piece(s->trace, p, turn);
	bool backward;

	*e = (struct entry){.lines = kinds_about(s->k, p)->lines, .ticks = p->ticks, .graph = kinds_of(s->k, p) == KIND_ACTIVATIONS};
	backward = graph_waits_for_backward(s, e);
	if (!kinds_about(s->k, p)->backward && is_of_other_thread(s, p->stack))
		all = 0;
	path_of_turns(&e->path, s->trace, &s->loops, turn, n, backward ? LOOP_AROUND_BACKWARD : all);
	path_add_recursion(&e->path, s->trace, p->stack ? p->stack : p->forward_stack);
	return e->path.n && !path_is_now(&e->path, backward ? &s->now_backward : &s->now);
}

static void find_went(struct search *s)
{
	size_t n = trace_freed(s->trace, &s->freed);

	s->frees_since = trace_header(s->trace)->n_blocks_freed > n && n ? s->freed[0]->ticks : 0;
	s->went = xcalloc(n + 1, sizeof(*s->went));
	for (size_t i = 0; i < n; i++) {
		struct piece p = piece_of_freed(s->trace, s->freed[i]);

		if (p.kind != CW_MEM_TORCH || p.device != s->m->device || s->freed[i]->ticks > s->m->when ||
		    !entry_of(s, &s->went[s->n_went], &p))
			continue;
		s->went[s->n_went++].block = i;
	}
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
	const struct path *now = graph_waits_for_backward(s, e) ? &s->now_backward : &s->now;

	return !has_loop(now, e->path.step[e->path.n - 1].loop);
}

/* Are they of several turns of a loop that was still turning when memory ran out, if only the one around their own? */
static bool adds_again(const struct search *s, const struct entry *e, size_t n)
{
	const struct path *now = graph_waits_for_backward(s, e) ? &s->now_backward : &s->now;

	for (size_t i = 1; i < n; i++)
		for (uint32_t k = 0; k < e[i].path.n && k < e[i - 1].path.n; k++) {
			const struct loop_turn *a = &e[i - 1].path.step[k], *b = &e[i].path.step[k];

			if (a->loop == b->loop && a->turn != b->turn && has_loop(now, a->loop))
				return true;
			if (a->loop != b->loop || a->turn != b->turn)
				break;
		}
	return false;
}

/* The innermost loop around these blocks; 0 = only a function that calls itself. */
static uint32_t loop_of(const struct entry *e)
{
	for (uint32_t i = e->path.n; i > 0; i--)
		if (!(e->path.step[i - 1].loop & RECURSION))
			return e->path.step[i - 1].loop;
	return 0;
}

/* Did a thread that has nothing to do with the model run out of memory in this loop? Then the loop would have added more. */
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

/* A loop that ended before most of the work was done cannot be the reason: it loaded a data set. */
static bool is_long_over(const struct search *s, const struct entry *newest)
{
	uint64_t first = kinds_first_ticks(s->k, &s->m->torch.list[newest->block]);
	first = first ? first : newest->ticks;

	return s->m->when != UINT64_MAX && newest->ticks - first < s->m->when - newest->ticks;
}

/* Blocks of several earlier turns, up to one that is no longer ago than the turns are apart. What is made once, when it is first needed,
 * is not added in every turn. Where each turn replaces what it finds by something larger, a single block may be all that is left. */
static bool adds(struct search *s, const struct entry *e, size_t n, struct pile *p)
{
	const struct path *now = graph_waits_for_backward(s, e) ? &s->now_backward : &s->now, *last = &e[n - 1].path;
	struct held_by_line held;
	uint32_t apart = 1;
	size_t turns = 1;

	for (size_t i = 1; i < n; i++) {
		uint32_t between = path_turns_between(&e[i - 1].path, &e[i].path);

		if (path_order(&e[i - 1].path, &e[i].path) == 0)
			continue;
		apart = between > apart ? between : apart;
		turns++;
	}
	if (path_turns_between(last, now) > 2 * apart)
		return false;
	if (is_over(s, &e[n - 1]) && is_long_over(s, &e[n - 1]) && !was_cut_short(s, last->step[last->n - 1].loop))
		return false;
	held = held_by_line(s, e, n);
	p->replaced = !e->graph && held.rises && s->out->grown.alone && (turns < 2 || held.window);
	p->turns = p->replaced ? held.rises : turns;
	s->out->rising |= !e->graph && held.rises && !p->replaced && (turns < 2 || held.window);
	return p->replaced || (turns > 1 && !held.window);
}

struct tally *tally_of(struct tallies *t, const struct place *place)
{
	size_t i = 0;

	while (i < t->n && !place_same(&t->list[i].place, place))
		i++;
	if (i == t->n)
		t->list[t->n++] = (struct tally){.place = *place};
	return &t->list[i];
}

void left_add(struct search *s, struct left *l, struct tallies *lines, const struct entry *e, const struct pile *p)
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
		l->again = p->turns > 1 && (p->replaced || !l->over || adds_again(s, e + p->first, p->end - p->first) ||
					    was_cut_short(s, loop_of(&e[p->end - 1])));
		l->replaced = p->replaced;
	}
}

bool is_part_of_model(enum ledger_kind kind)
{
	return kind == KIND_PARAMETERS || kind == KIND_GRADIENTS || kind == KIND_OPTIMIZER;
}

/* Is it a part of a model, or of another object that was under construction? */
static bool is_built(const struct search *s, const struct piece *p)
{
	const struct cw_stack *stack = p->stack ? trace_stack(s->trace, p->stack) : NULL;
	bool found = is_part_of_model(kinds_of(s->k, p));

	for (uint32_t i = 0; stack && i < stack->n && !found; i++)
		found = stack_owner(s->trace, stack, i) != OWNER_TORCH &&
			!strcmp(function_base(trace_string(s->trace, stack->frame[i].function)), "__init__");
	return found;
}

/* Was it freed in the loop, other than what constructors need for a moment? */
static bool lets_go(const struct search *s, uint32_t loop, bool builds)
{
	for (size_t i = 0; i < s->n_went; i++) {
		struct piece p = piece_of_freed(s->trace, s->freed[s->went[i].block]);

		if (has_loop(&s->went[i].path, loop) && !(builds && is_built(s, &p)))
			return true;
	}
	return false;
}

/* Before a program works with a model, a loop that frees nothing of what it allocates, and failed when it asked for more of the
 * same, builds something: a table, a cache, a data set on the GPU. So does one that constructs objects and failed in a constructor, the
 * layers of a model for instance. As far as we know, all of that is needed. */
static bool only_builds(const struct search *s, const struct entry *all, size_t n, const struct entry *e)
{
	bool builds = is_built(s, &s->m->torch.list[e->block]) && is_built(s, &s->request), more;
	uint32_t loop = loop_of(e);

	if (e->graph || !loop || s->loops.any_model || s->loops.any_backward ||
	    trace_header(s->trace)->minor < 6 ||	/* frees had no turns before */
	    lets_go(s, loop, builds))
		return false;
	more = builds && has_loop(&s->now, loop);
	for (size_t i = 0; i < n && !more; i++)
		more = all[i].lines == s->failed && has_loop(&all[i].path, loop);
	return more;
}

static size_t find_piles(struct search *s, struct entry *e, size_t n, struct pile *pile)
{
	size_t piles = 0;

	xsort(e, n, sizeof(*e), by_lines_and_path);
	for (size_t i = 0, end; i < n; i = end) {
		struct pile p = {.first = i};

		for (end = i; end < n && e[end].lines == e[i].lines && e[end].graph == e[i].graph; end++)
			;
		p.end = end;
		if (!adds(s, e + i, end - i, &p))
			continue;
		p.released = e[i].graph && graph_nodes_let_go(s, e[i].lines, p.turns);
		if (only_builds(s, e, n, &e[i]))
			for (size_t k = i; k < end; k++)
				s->out->built += s->m->torch.list[e[k].block].size;
		else
			pile[piles++] = p;
	}
	return piles;
}

/* Is the one that is looked for in the same turns, or around those of the other? */
static int by_turns_around(const void *around, const void *within)
{
	const struct path *a = &((const struct entry *)around)->path;
	struct path b = ((const struct entry *)within)->path;

	b.n = b.n < a->n ? b.n : a->n;
	return path_order(a, &b);
}

/* A graph also keeps its inputs alive, which may be made once for the passes of an inner loop. Whether these would stay without it is not
 * known. `graph` is sorted by path. */
static bool may_be_input(const struct entry *graph, size_t n, const struct entry *e, const struct pile *p)
{
	size_t with = 0;

	for (size_t i = p->first; i < p->end; i++)
		with += n && bsearch(&e[i], graph, n, sizeof(*graph), by_turns_around) != NULL;
	return 2 * with >= p->end - p->first;
}

static enum ledger_kind kind_of_entry(const struct search *s, const struct entry *e)
{
	return kinds_of(s->k, &s->m->torch.list[e->block]);
}

static uint64_t bytes_of_kind(const struct search *s, enum ledger_kind kind)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->m->torch.n; i++)
		sum += kinds_of(s->k, &s->m->torch.list[i]) == kind ? s->m->torch.list[i].size : 0;
	return sum;
}

/* Is there more of one kind, whatever the allocator did not split off? */
static bool exceeds(const struct search *s, enum ledger_kind kind, uint64_t bytes)
{
	uint64_t least = 0;

	for (size_t i = 0; i < s->m->torch.n; i++) {
		uint64_t size = s->m->torch.list[i].size;

		if (size > LEFT_UNSPLIT)
			size = size > 2 * LEFT_UNSPLIT ? size - LEFT_UNSPLIT : LEFT_UNSPLIT;
		least += kinds_of(s->k, &s->m->torch.list[i]) == kind ? size : 0;
	}
	return least > bytes;
}

/* Does each turn that works with a model leave that model behind, as the trials of a search do? A loop that only builds the layers of a
 * model does not work with it. */
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

/* The most bytes that a line of an optimizer keeps for each byte of the parameters: one element per element, of at most 8 bytes where
 * the parameters' have at least 2. */
#define STATE_OF_PARAMETER 4

/* There is more optimizer state than these parameters can need: the optimizer was created again, and the old one is still alive. `e` is
 * sorted by lines. */
static bool is_made_again(const struct search *s, const struct entry *e, size_t n, uint64_t parameters)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n && e[i].lines == e[0].lines; i++)
		bytes += s->m->torch.list[e[i].block].size;
	return parameters && bytes / STATE_OF_PARAMETER > parameters;
}

/* Parameters, gradients and optimizer state are allocated once per parameter, later for layers that are trained only from some turn on;
 * they are not left behind. If there are more gradients than parameters, something else keeps them. Returns how many entries remain. */
static size_t drop_parts_of_models(struct search *s, struct entry *e, size_t n)
{
	uint64_t parameters = bytes_of_kind(s, KIND_PARAMETERS);
	bool grads = exceeds(s, KIND_GRADIENTS, parameters), again = false;
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

/* The current turn may have replaced what it found before it ran out of memory: then the lines that grow have no block of an earlier turn.
 * `current`: the entries of this turn. Returns how many entries there are now. */
static size_t add_replaced_now(struct search *s, struct entry *e, size_t n, struct entry *current, size_t n_current)
{
	size_t all = n;

	xsort(current, n_current, sizeof(*current), by_lines_and_path);
	for (size_t i = 0, end; i < n_current; i = end) {
		bool earlier = false;
		struct pile p;

		for (end = i;
		     end < n_current && current[end].lines == current[i].lines && current[end].graph == current[i].graph;
		     end++)
			;
		for (size_t k = 0; k < n && !earlier; k++)
			earlier = e[k].lines == current[i].lines;
		if (earlier || is_part_of_model(kind_of_entry(s, &current[i])) || !adds(s, current + i, end - i, &p))
			continue;
		memcpy(e + all, current + i, (end - i) * sizeof(*e));
		all += end - i;
	}
	return all;
}

/* Where backward frees graphs, a single tensor per turn is not a graph: a graph would also have kept what its operations need. Detaching
 * a tensor frees nothing. */
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
	bool *own = kept_by_models(s, e, n);
	uint64_t inputs = 0, built = 0;
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
	xsort(graph, n_graph, sizeof(*graph), entry_by_path);
	for (size_t i = 0; i < piles; i++) {
		bool is_graph = e[pile[i].first].graph && !pile[i].released;
		bool of_graph = !gone && (is_graph || may_be_input(graph, n_graph, e, &pile[i]));

		left_add(s, of_graph ? &s->out->graphs : &s->out->tensors, &lines[of_graph], e, &pile[i]);
		for (size_t k = pile[i].first; of_graph && !is_graph && k < pile[i].end; k++)
			inputs += s->m->torch.list[e[k].block].size;
		for (size_t k = pile[i].first; !of_graph && k < pile[i].end; k++)
			built += own[k] || is_built(s, &s->m->torch.list[e[k].block]) ? s->m->torch.list[e[k].block].size : 0;
		if (pile[i].released && !known.by_frees)	/* unless it is an attribute of the user's own autograd function, which is kept by its node */
			s->out->exact = false;
	}
	if (inputs > s->out->graphs.bytes / 2)
		s->out->exact = false;
	s->out->tensors.built = built > s->out->tensors.bytes / 2;
	if (s->out->tensors.replaced || s->out->tensors.built)	/* all of it may be needed */
		s->out->exact = false;
	if (!s->loops.any_model && !s->loops.any_backward)	/* it may build something that it needs */
		s->out->exact = false;
	if (!gone) {
		graphs_find_last(s, graph, n_graph);
		graphs_find_loop(s, graph, n_graph);
	}
	if (!gone && graphs_mostly_run(s, graph, n_graph))
		s->out->exact = false;
	tries_add(s, f, lines);
	free(graph);
	free(activation);
	free(pile);
	free(own);
	free(lines[0].list);
	free(lines[1].list);
}

void leftovers_find(struct leftovers *l, struct trace *t, const struct moment *m, struct kinds *k,
		    const struct cw_failure *f, struct pool *pool)
{
	struct search s = {.out = l,
			   .trace = t,
			   .m = m,
			   .k = k,
			   .in_backward = failure_in_backward(t, f),
			   .failed = lines_hash(t, f->stack),
			   .request = {.stack = f->stack, .kind = CW_MEM_TORCH, .device = m->device}};
	struct entry *e = xcalloc(m->torch.n + 1, sizeof(*e)), *current = xcalloc(m->torch.n + 1, sizeof(*e));
	struct turn turn[CW_LOOP_TURNS];
	uint32_t failed = f->stack ? f->stack : f->forward_stack;
	size_t n, entries = 0, n_current = 0, len;

	*l = (struct leftovers){.known = trace_chunk(t, CW_CHUNK_LOOPS, &len) && trace_chunk(t, CW_CHUNK_TURNS, &len),
				.exact = !trace_header(t)->lost_turns};
	l->graphs.gone = pool_alloc(pool, m->torch.n + 1);
	l->tensors.gone = pool_alloc(pool, m->torch.n + 1);
	loops_find(&s.loops, t, m);
	graphs_find_nodes(&s);
	n = turns_at_failure(t, f, turn);
	path_of_turns(&s.now, t, &s.loops, turn, n,
		      s.loops.any_model && (s.in_backward || !is_of_other_thread(&s, failed)) ? LOOP_AROUND_MODEL : 0);
	path_of_turns(&s.now_backward, t, &s.loops, turn, n, LOOP_AROUND_BACKWARD);
	path_add_recursion(&s.now, t, failed);
	path_add_recursion(&s.now_backward, t, failed);
	l->in_loop = s.now.n > 0;
	for (uint32_t i = 0; i < s.now.n; i++)
		l->turned |= s.now.step[i].turn > 1;
	l->first_pass = s.now.n > 1 && s.now.step[0].turn == 1 && !trace_header(t)->n_nodes_run;
	for (size_t i = 0; l->known && i < m->torch.n; i++)
		if (entry_of(&s, &e[entries], &m->torch.list[i])) {
			e[entries++].block = i;
		} else if (e[entries].path.n) {
			current[n_current] = e[entries];
			current[n_current++].block = i;
		}
	find_went(&s);
	grown_find(&s, e, entries, s.failed, f->request_bytes);
	entries = drop_parts_of_models(&s, e, entries);
	entries = add_replaced_now(&s, e, entries, current, n_current);
	sort_out(&s, e, entries, f);
	l->run_again = bytes_run_again(&s);
	free(e);
	free(current);
	free(s.went);
	free(s.run);
	free(s.node);
	free(s.loops.is);
}
