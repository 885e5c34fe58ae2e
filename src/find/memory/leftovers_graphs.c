/* SPDX-License-Identifier: Apache-2.0
 * Which of what earlier turns left are graphs of autograd, or could not be: what its nodes have saved, let go of and run.
 */
#include "find/memory/leftovers_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

void graphs_find_nodes(struct search *s)
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

/* Activations wait for backward. Where backward runs, a turn of the loop around it is what frees them, however many turns of inner loops
 * (over time steps, over parts of a batch) allocate them. */
bool graph_waits_for_backward(const struct search *s, const struct entry *e)
{
	return e->graph && s->loops.any_backward &&
	       (s->in_backward || (s->n_run && bsearch(&e->lines, s->run, s->n_run, sizeof(*s->run), by_number)));
}

/* Have the nodes of these lines released what they had saved? Then what stays of `turns` earlier turns is no graph, because each of
 * these turns would have left a node that still holds something. The current turn's nodes do not count: they may be about to run. If
 * some nodes were forgotten, the same share of the turns is missing. */
bool graph_nodes_let_go(const struct search *s, uint64_t lines, size_t turns)
{
	uint64_t all = trace_header(s->trace)->n_nodes;
	double known = all > s->n_nodes ? (double)s->n_nodes / (double)all : 1;
	size_t first = first_node(s, lines), n = first_node(s, lines + 1) - first;
	double now = (double)n / (known * (double)(turns + 1)) + 1;
	size_t earlier = now < (double)n ? n - (size_t)now : 0;
	size_t released = s->node[first + earlier].before - s->node[first].before;

	return released && (double)(earlier - released) < known * (double)turns / 4;
}

/* The share of the nodes of these lines that have not released what they had saved. */
static double part_that_waits(const struct search *s, uint64_t lines)
{
	size_t first = first_node(s, lines), end = first_node(s, lines + 1);
	size_t released = s->node[end].before - s->node[first].before;

	return end > first ? 1 - (double)released / (double)(end - first) : 1;
}

/* What backward needs is freed together with the graph, after the last activation of its turn was allocated. If more of these
 * turns was freed at that point than is left of them, the graphs are gone, and what is left are single tensors that something
 * else keeps. Only turns whose frees are all recorded count. */
static bool turn_starts_after(const struct entry *e, size_t n, uint64_t ticks)
{
	for (size_t i = 0; i < n; i++)
		if (e[i].ticks < ticks)
			return false;
	return true;
}

/* `kept`: activations that stayed; sorts them by path. Backward frees as much of a line's tensors as it runs of its nodes, which says
 * nothing about graphs that it did not run. If the frees of no turn are all known (before format 2.6, frees had no turns), graphs cannot
 * be told from tensors that outlived them. */
struct gone graphs_are_gone(struct search *s, struct entry *kept, size_t n)
{
	size_t went_n = 0;
	struct entry *went = xcalloc(s->n_went + 1, sizeof(*went));
	double stay = 0, left = 0, waited = 0;

	for (size_t i = 0; i < s->n_went; i++)
		if (s->went[i].graph)
			went[went_n++] = s->went[i];
	xsort(kept, n, sizeof(*kept), entry_by_path);
	xsort(went, went_n, sizeof(*went), entry_by_path);
	for (size_t i = 0, end, j = 0; i < n; i = end) {
		uint64_t last = 0, bytes = 0;
		size_t first;

		for (end = i; end < n && !entry_by_path(&kept[i], &kept[end]); end++) {
			bytes += s->m->torch.list[kept[end].block].size;
			last = kept[end].ticks > last ? kept[end].ticks : last;
		}
		while (j < went_n && entry_by_path(&went[j], &kept[i]) < 0)
			j++;
		for (first = j; j < went_n && !entry_by_path(&went[j], &kept[i]); j++)
			last = went[j].ticks > last ? went[j].ticks : last;
		if (!turn_starts_after(kept + i, end - i, s->frees_since) ||
		    !turn_starts_after(went + first, j - first, s->frees_since))
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

/* Is what these lines allocate the result of the model? Then the following nodes are views of it, up to one that was created outside the
 * model. */
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

/* The result of a model is kept by code at the place where the model is called. */
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

/* In each turn, the newest tensor of the graph is the one that keeps it; this finds the line that most turns have in common. */
void graphs_find_last(struct search *s, struct entry *kept, size_t n)
{
	struct tallies lines = {xcalloc(n + 1, sizeof(*lines.list)), 0};
	const struct tally *best = NULL;
	const struct entry *of = NULL;

	xsort(kept, n, sizeof(*kept), entry_by_path);
	for (size_t i = 0, end; i < n; i = end) {
		const struct entry *newest = &kept[i];
		struct tally *line;

		for (end = i; end < n && !entry_by_path(&kept[i], &kept[end]); end++)
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

/* The loop that has turned since: the outermost of the block's that is in another turn now, or over. */
static uint32_t loop_since(const struct path *block, const struct path *now)
{
	uint32_t i = 0;

	while (i < block->n && i < now->n && !memcmp(&block->step[i], &now->step[i], sizeof(now->step[i])))
		i++;
	return i < block->n ? block->step[i].loop : RECURSION;
}

/* A loop in which backward runs should have freed the graph of each turn. Where it runs elsewhere, these turns are parts of one pass. */
void graphs_find_loop(struct search *s, const struct entry *kept, size_t n)
{
	uint64_t trained = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		const struct path *now = graph_waits_for_backward(s, &kept[i]) ? &s->now_backward : &s->now;
		uint32_t loop = loop_since(&kept[i].path, now);
		uint64_t size = s->m->torch.list[kept[i].block].size;

		all += size;
		trained += !(loop & RECURSION) && s->loops.is[loop] & LOOP_AROUND_BACKWARD ? size : 0;
	}
	s->out->graphs_in_training = trained > all / 2;
}

/* Backward frees what it has used. If it runs the nodes of a line and tensors of the line stay, they are a graph only if it was
 * retained, which recordings before format 2.8 do not say; they may as well be tensors that were detached and kept. */
bool graphs_mostly_run(const struct search *s, const struct entry *kept, size_t n)
{
	uint64_t run = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t size = s->m->torch.list[kept[i].block].size;

		all += size;
		run += bsearch(&kept[i].lines, s->run, s->n_run, sizeof(*s->run), by_number) ? size : 0;
	}
	return run > all / 2;
}
