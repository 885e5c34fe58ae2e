/* SPDX-License-Identifier: Apache-2.0
 * From one C++ object to the next (see holders_graph.h).
 *
 * Nothing is known of these objects but that glibc allocated them, which tells how long each is, and that tensors begin with a table of
 * functions that is known. Any word that leads to another such object is followed. A word that nobody uses any more may lead too far:
 * what is found like this is evidence, never proof.
 */
#include "find/memory/holders_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/proc.h"

#define SMALLEST	32u	/* bytes of what glibc allocates */
#define LARGEST		4096u	/* of a node of a graph, or a list of its edges */
#define IN_USE		1u	/* in the length of the next piece */
#define OBJECTS_MAX	(2u << 20)
#define CHECK_EVERY	256u
#define NOWHERE		UINT32_MAX
#define NODE_LEAST	128u	/* bytes of a node */
#define BASES		8u
#define ITEMS_MAX	4096u
#define ATTRIBUTES_DEEP	3u	/* ctx.outputs['x'][0] */

static bool same(const void *list, uint32_t i, const void *key)
{
	return ((const struct graph_object *)list)[i].at == *(const uint64_t *)key;
}

/* Bytes of an object on the heap; 0: it is none, or it is large. */
static uint64_t size_of(const struct graph_walk *w, uint64_t at)
{
	struct remote *r = w->heap->p->r;
	uint64_t size = 0, next = 0;

	if (at % 16 || at < REMOTE_PAGE || at >= 1ull << 47 || !remote_word(r, at - 8, &size))
		return 0;
	size &= ~(uint64_t)15;
	if (size < SMALLEST || size > LARGEST || !remote_word(r, at - 8 + size, &next) || !(next & IN_USE))
		return 0;
	return size - 8;
}

static bool is_tensor(const struct graph_walk *w, uint64_t at)
{
	uint64_t table = 0;

	if (!remote_word(w->heap->p->r, at, &table))
		return false;
	for (size_t i = 0; i < w->layout->n_tables; i++)
		if (w->layout->table[i] == table)
			return true;
	return false;
}

/* What a tensor refers to that has tensors in it is what autograd knows of it: its gradient and, if it is a view, its base. */
static void put_block(struct graph_walk *w, const struct graph_object *o, size_t block)
{
	const struct graph_object *of = o->from != NOWHERE ? &w->object[o->from] : NULL;
	const struct graph_object *owner = of && !of->tensor && of->from != NOWHERE ? &w->object[of->from] : NULL;
	bool known = owner && owner->tensor, same = known && tensor_impl_block(w->layout, owner->at) == block;

	w->block = xgrow(w->block, w->n_blocks, &w->cap_blocks, sizeof(*w->block));
	w->block[w->n_blocks++] = (struct graph_block){
		.block = block,
		.used = tensor_elements(w->layout, o->at),
		.gradient = known && !same,
		.base = same,
		.first = !of,
	};
}

static void reach(struct graph_walk *w, uint64_t at, uint32_t from)
{
	struct graph_object o = {at, from, false};
	size_t block;

	if (!size_of(w, at) || w->n >= OBJECTS_MAX ||
	    map_put(&w->seen, map_hash(at), same, w->object, &at, (uint32_t)w->n) != w->n)
		return;
	o.tensor = is_tensor(w, at);
	w->object = xgrow(w->object, w->n, &w->cap, sizeof(*w->object));
	w->object[w->n++] = o;
	block = o.tensor ? tensor_impl_block(w->layout, at) : SIZE_MAX;
	if (block != SIZE_MAX)
		put_block(w, &o, block);
}

/* The `ctx` of an autograd.Function is an object of Python's that the graph keeps. Its class is derived from one of PyTorch's. */
static bool is_context_class(struct graph_walk *w, uint64_t type)
{
	struct graph_class *known = &w->class[map_hash(type) % GRAPH_CLASSES];
	struct remote *r = w->heap->p->r;
	uint64_t at = type, name = 0;
	char text[32];

	if (known->type == type)
		return known->context;
	*known = (struct graph_class){.type = type};
	for (unsigned i = 0; i < BASES && at % 8 == 0 && at >= REMOTE_PAGE && !known->context; i++) {
		if (!remote_word(r, at + PY_TYPE_NAME, &name) || name < REMOTE_PAGE ||
		    !remote_string(r, name, text, sizeof(text)))
			break;
		known->context = !strcmp(text, "torch._C._FunctionBase");
		if (!remote_word(r, at + PY_TYPE_BASE, &at))
			break;
	}
	return known->context;
}

static bool is_context(struct graph_walk *w, uint64_t at)
{
	uint64_t type = 0;

	return at % 8 == 0 && at >= REMOTE_PAGE && at < 1ull << 47 && remote_word(w->heap->p->r, at + PY_TYPE, &type) &&
	       type % 8 == 0 && type >= REMOTE_PAGE && is_context_class(w, type);
}

static void reach_tensors(struct graph_walk *w, uint64_t object, uint32_t from, unsigned depth);

static void reach_edges(struct graph_walk *w, uint64_t object, uint32_t from, unsigned depth, bool attributes)
{
	struct py_edges edges = {0};

	pyheap_edges(w->heap, object, &edges);
	for (size_t i = 0; i < edges.n && i < ITEMS_MAX; i++)
		if (!attributes || edges.list[i].link == LINK_DICT || edges.list[i].link == LINK_ATTRIBUTE)
			reach_tensors(w, edges.list[i].to, from, depth);
	free(edges.list);
}

static void reach_tensors(struct graph_walk *w, uint64_t object, uint32_t from, unsigned depth)
{
	const struct py_type *t = pyheap_type(w->heap, object);
	enum py_kind kind = t ? t->kind : PY_NOTHING;

	if (kind == PY_TENSOR)
		reach(w, tensor_impl(w->layout, object), from);
	else if (depth && (kind == PY_DICT || kind == PY_LIST || kind == PY_TUPLE))
		reach_edges(w, object, from, depth - 1, false);
}

/* What it saved for backward is in its own words; then its attributes. */
static void follow_context(struct graph_walk *w, uint64_t context, uint32_t from)
{
	const struct py_type *t = pyheap_type(w->heap, context);
	uint32_t end = t ? t->basic : 0;
	uint64_t to;

	for (uint32_t i = 2 * sizeof(uint64_t); i + 8 <= end && i < LARGEST; i += 8)
		if (remote_word(w->heap->p->r, context + i, &to) && to)
			reach(w, to, from);
	reach_edges(w, context, from, ATTRIBUTES_DEEP, true);
}

/* Any other object of Python's is found by name, or nothing keeps it but C++: then what it refers to is not followed. */
static void follow(struct graph_walk *w, uint32_t from)
{
	uint64_t at = w->object[from].at, size = size_of(w, at), to;

	if (!w->object[from].tensor && pyheap_type(w->heap, at))
		return;
	for (uint64_t i = 0; i + 8 <= size; i += 8)
		if (remote_word(w->heap->p->r, at + i, &to) && to) {
			if (size >= NODE_LEAST && is_context(w, to))
				follow_context(w, to, from);
			else
				reach(w, to, from);
		}
}

void graph_follow(struct graph_walk *w, uint64_t impl)
{
	w->n_blocks = 0;
	if (w->late)
		return;
	reach(w, impl, NOWHERE);
	for (; w->next < w->n && !w->late; w->next++) {
		follow(w, (uint32_t)w->next);
		w->late = w->next % CHECK_EVERY == 0 && proc_mono_ns() > w->until_ns;
	}
}

void graph_release(struct graph_walk *w)
{
	free(w->object);
	free(w->block);
	map_release(&w->seen);
	*w = (struct graph_walk){0};
}
