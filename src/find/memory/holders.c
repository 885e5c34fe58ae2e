/* SPDX-License-Identifier: Apache-2.0
 * From tensors and the ways to them to those that hold the most (see holders.h).
 *
 * The ways form a tree of names. A holder is where the bytes part: below it no single name has a large share of them.
 */
#include "find/memory/holders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "cuwhy/format.h"
#include "find/memory/holders_graph.h"
#include "find/memory/holders_names.h"
#include "find/memory/holders_search.h"
#include "find/memory/holders_tensors.h"
#include "read/live/target.h"

#define SHARE		20u	/* a holder has at least one in so many of the bytes in use */
#define MOST_OF_IT	10u	/* below "[*]", a single name has all but one in so many */
#define SAMPLES		256u	/* tensors that PyTorch's layout is learned from */
#define PROOFS		3u	/* tensors of a holder whose whole way is read again */
#define PROOF_NS	150000000u
#define FINE		64u	/* the same, where no holder has that much */
#define LARGE		16u	/* items of a container that are not told apart */
#define CHECK_EVERY	1024u	/* tensors between two looks at the clock */
#define NO_BRANCH	UINT32_MAX
#define PATH_MAX_BYTES	320u

struct branch {
	const char *text;
	uint32_t parent, root;	/* root: a node */
	uint64_t object;	/* at its end; 0 = there are several */
	uint64_t within;	/* "[*]": of which container; 0 = of several */
	uint64_t bytes, graph;	/* graph: of these, by way of C++ objects */
	uint32_t tensors, blocks;
	uint32_t proof[PROOFS];	/* nodes of tensors */
	uint32_t child, next;	/* first child; next of the same parent */
};

struct share { uint32_t stack; uint64_t bytes; };

struct tree {
	struct branch *branch;
	size_t n, cap;
	uint32_t *of_block;	/* the branch of each block's first tensor */
};

static uint32_t branch_put(struct tree *t, uint32_t parent, const struct name_step *step, uint32_t root)
{
	uint32_t *from = &t->branch[parent].child, new;

	for (uint32_t i = *from; i != NO_BRANCH; i = t->branch[i].next)
		if (!strcmp(t->branch[i].text, step->text) && (parent != 0 || t->branch[i].root == root)) {
			if (t->branch[i].object != step->object)
				t->branch[i].object = 0;
			if (t->branch[i].within != step->within)
				t->branch[i].within = 0;
			return i;
		}
	t->branch = xgrow(t->branch, t->n, &t->cap, sizeof(*t->branch));
	new = (uint32_t)t->n++;
	t->branch[new] = (struct branch){.text = step->text, .parent = parent, .root = root, .object = step->object,
					 .within = step->within, .child = NO_BRANCH, .next = t->branch[parent].child};
	t->branch[parent].child = new;
	return new;
}

/* A few tensors of each branch, from all over it. */
static void remember(struct branch *b, uint32_t node)
{
	if (b->tensors < PROOFS)
		b->proof[b->tensors] = node;
	else
		b->proof[PROOFS - 1] = node;
}

/* The branch at the end of a way, and all that it comes from. */
static uint32_t tree_add(struct tree *t, const struct name_way *way, uint32_t node)
{
	uint32_t at = 0;

	for (size_t i = 0; i <= way->n; i++) {
		remember(&t->branch[at], node);
		t->branch[at].tensors++;
		if (i < way->n)
			at = branch_put(t, at, &way->step[i], way->root);
	}
	return at;
}

/* Each block counts once, for the first tensor that leads to it. */
static void tree_count(struct tree *t, uint32_t end, size_t block, uint64_t bytes, bool graph)
{
	if (t->of_block[block])
		return;
	t->of_block[block] = end;
	for (uint32_t at = end; at != NO_BRANCH; at = t->branch[at].parent) {
		t->branch[at].blocks++;
		t->branch[at].bytes += bytes;
		t->branch[at].graph += graph ? bytes : 0;
	}
}

struct found {
	struct search s;
	struct tree tree;
	struct tensor_layout layout;
	const struct holders_ask *ask;
	struct holders *to;
	struct pool *pool;
	uint64_t least;		/* bytes of a holder */
	uint32_t *end;		/* of the way to each tensor: a branch */
	struct graph_walk walk;
};

static void learn_layout(struct found *f)
{
	uint64_t object[SAMPLES];
	size_t n = 0, step = f->s.n_tensors / SAMPLES + 1;

	for (size_t i = 0; i < f->s.n_tensors && n < SAMPLES; i += step)
		object[n++] = f->s.node[f->s.tensor[i]].object;
	tensor_layout_learn(&f->layout, f->s.heap->p->r, f->ask->block, f->ask->n_blocks, object, n);
}

static uint64_t object_of(const struct found *f, size_t tensor)
{
	return f->s.node[f->s.tensor[tensor]].object;
}

/* One more item of the container that the tensor before is in: of a large one, all items have one name. */
static bool is_next_item(struct found *f, size_t i, const struct name_way *way)
{
	const struct node *it = &f->s.node[f->s.tensor[i]], *before = i ? &f->s.node[f->s.tensor[i - 1]] : it;
	const struct name_step *last = way->n ? &way->step[way->n - 1] : NULL;
	uint64_t length;

	return i && last && it->parent != NO_NODE && it->parent == before->parent && it->link == before->link &&
	       last->object == before->object && last->within == f->s.node[it->parent].object &&
	       pyheap_length(f->s.heap, last->within, &length) && length > LARGE;
}

/* The end of the way to each tensor from number `from` on; 0 = it has none. */
static void name_tensors(struct found *f, size_t from)
{
	struct name_way way = {0};

	f->end = xrealloc(f->end, f->s.n_tensors + 1, sizeof(*f->end));
	for (size_t i = from; i < f->s.n_tensors; i++) {
		f->end[i] = 0;
		if (i % CHECK_EVERY == 0 && proc_mono_ns() > f->ask->until_ns)
			f->walk.late = true;
		if (f->walk.late)
			continue;
		if (is_next_item(f, i, &way))
			way.step[way.n - 1].object = object_of(f, i);
		else if (!name_way(&f->s, f->s.tensor[i], &way, f->pool))
			way.n = 0;
		if (way.n)
			f->end[i] = tree_add(&f->tree, &way, f->s.tensor[i]);
	}
}

/* What tensors have themselves is theirs; then come graphs, which lead to the tensors of others, too. */
static void count_blocks(struct found *f, size_t from)
{
	for (size_t i = from; i < f->s.n_tensors; i++) {
		size_t block = tensor_block(&f->layout, object_of(f, i));

		if (f->end[i] && block != SIZE_MAX)
			tree_count(&f->tree, f->end[i], block, f->ask->block[block]->size, false);
	}
	for (size_t i = from; i < f->s.n_tensors && !f->walk.late; i++) {
		if (!f->end[i])
			continue;
		graph_follow(&f->walk, tensor_impl(&f->layout, object_of(f, i)));
		for (size_t k = 0; k < f->walk.n_blocks; k++) {
			size_t block = f->walk.block[k];

			tree_count(&f->tree, f->end[i], block, f->ask->block[block]->size, true);
		}
	}
}

/* Counts the tensors from number `from` on. */
static void count(struct found *f, size_t from)
{
	if (!f->layout.known)
		learn_layout(f);
	if (!f->layout.known)
		return;
	name_tensors(f, from);
	count_blocks(f, from);
}

static bool nearly_all(const struct found *f)
{
	return f->layout.known && f->tree.branch[0].bytes >= f->to->live_bytes - f->to->live_bytes / SHARE;
}

static bool is_within(const struct tree *t, uint32_t at, uint32_t top)
{
	while (at != top && at != 0)
		at = t->branch[at].parent;
	return at == top;
}

static int by_stack(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* The line that allocated most of what a branch has, if it is most of it. */
static uint32_t main_stack(const struct found *f, uint32_t branch)
{
	struct share *list = xcalloc(f->ask->n_blocks + 1, sizeof(*list)), best = {0}, sum = {0};
	size_t n = 0;

	for (size_t i = 0; i < f->ask->n_blocks; i++)
		if (f->tree.of_block[i] && is_within(&f->tree, f->tree.of_block[i], branch))
			list[n++] = (struct share){f->ask->block[i]->stack, f->ask->block[i]->size};
	xsort(list, n, sizeof(*list), by_stack);
	for (size_t i = 0; i < n; i++) {
		if (list[i].stack != sum.stack)
			sum = (struct share){list[i].stack, 0};
		sum.bytes += list[i].bytes;
		if (sum.bytes > best.bytes)
			best = sum;
	}
	free(list);
	return best.bytes > f->tree.branch[branch].bytes / 2 ? best.stack : 0;
}

static bool still_holds(struct found *f, const struct branch *b)
{
	for (uint32_t i = 0; i < PROOFS && i < b->tensors; i++)
		for (uint32_t n = b->proof[i]; n != NO_NODE; n = f->s.node[n].parent)
			if (!search_holds(&f->s, n))
				return false;
	return true;
}

/* From the root to the branch; the "[*]" at the end is the container itself. */
static bool path_of(const struct tree *t, uint32_t branch, char *to, size_t size)
{
	uint32_t way[STEPS_MAX + 1];
	size_t n = 0, length = 0;

	for (uint32_t i = branch; i != 0 && n <= STEPS_MAX; i = t->branch[i].parent)
		way[n++] = i;
	to[0] = '\0';
	while (n-- > 0) {
		const char *text = t->branch[way[n]].text;

		if (!length && text[0] == '.')
			text++;
		if (length + strlen(text) + 1 > size)
			return false;
		memcpy(to + length, text, strlen(text) + 1);
		length += strlen(text);
	}
	return length > 0;
}

static const char *kind_name(struct found *f, uint64_t object)
{
	const struct py_type *t = object ? pyheap_type(f->s.heap, object) : NULL;
	const char *dot = t ? strrchr(t->name, '.') : NULL;

	return t ? pool_strdup(f->pool, dot ? dot + 1 : t->name) : "";
}

static bool describe(struct found *f, uint32_t at, struct holder *h)
{
	const struct branch *b = &f->tree.branch[at];
	bool items = !strcmp(b->text, "[*]"), parts = !b->text[0];
	uint32_t named = (items && b->within) || parts ? b->parent : at;
	uint64_t object = items ? b->within : f->tree.branch[named].object;
	char path[PATH_MAX_BYTES];
	struct py_frame frame;

	if (!path_of(&f->tree, named, path, sizeof(path)))
		return false;
	h->path = pool_strdup(f->pool, path);
	h->kind = kind_name(f, object);
	h->length = 0;
	if (object && !pyheap_length(f->s.heap, object, &h->length))
		h->length = 0;
	h->stack = main_stack(f, at);
	if (name_of_root(&f->s, b->root, &frame, f->pool)) {
		h->function = frame.function;
		h->file = frame.file;
		h->line = frame.line;
	}
	return true;
}

static void keep(struct found *f, uint32_t at, struct holder h)
{
	struct holders *to = f->to;
	size_t i;

	if (at == 0 || !still_holds(f, &f->tree.branch[at]) || !describe(f, at, &h))
		return;
	for (i = to->n; i > 0 && to->list[i - 1].bytes < h.bytes; i--)
		if (i < HOLDERS_MAX)
			to->list[i] = to->list[i - 1];
	if (i < HOLDERS_MAX)
		to->list[i] = h;
	to->n += to->n < HOLDERS_MAX;
}

/* What a large child has is the child's; the rest is the branch's own, if it is large. */
static void choose(struct found *f, uint32_t at)
{
	struct branch *b = &f->tree.branch[at];
	bool items = !strcmp(b->text, "[*]");
	struct holder h = {.bytes = b->bytes, .graph = b->graph, .tensors = b->tensors, .blocks = b->blocks};

	for (uint32_t i = b->child; i != NO_BRANCH; i = f->tree.branch[i].next) {
		const struct branch *c = &f->tree.branch[i];

		if (c->bytes < f->least || (items && c->bytes < h.bytes - h.bytes / MOST_OF_IT))
			continue;
		choose(f, i);
		h.bytes -= c->bytes;
		h.graph -= c->graph;
		h.tensors -= c->tensors;
		h.blocks -= c->blocks;
	}
	if (h.bytes >= f->least)
		keep(f, at, h);
}

/* Large containers hold data, mostly; the modules of libraries are many, and hardly ever hold anything. */
static void search(struct found *f, struct pyheap *heap)
{
	void (*const more[])(struct search *) = {search_large, search_rest};
	size_t counted = 0;

	search_names(&f->s, heap, f->ask->exception, f->ask->torch_path);
	for (size_t i = 0;; i++) {
		count(f, counted);
		counted = f->layout.known ? f->s.n_tensors : 0;
		if (nearly_all(f) || heap->late || i == sizeof(more) / sizeof(more[0]))
			return;
		more[i](&f->s);
	}
}

void holders_search(struct holders *to, const struct holders_ask *ask, struct pyheap *heap, struct pool *pool)
{
	struct found f = {.ask = ask, .to = to, .pool = pool};

	*to = (struct holders){.live_blocks = ask->n_blocks};
	for (size_t i = 0; i < ask->n_blocks; i++)
		to->live_bytes += ask->block[i]->size;
	f.least = to->live_bytes / SHARE + 1;
	f.tree.of_block = xcalloc(ask->n_blocks + 1, sizeof(*f.tree.of_block));
	f.tree.branch = xgrow(NULL, 0, &f.tree.cap, sizeof(*f.tree.branch));
	f.tree.branch[f.tree.n++] =
		(struct branch){.text = "", .parent = NO_BRANCH, .child = NO_BRANCH, .next = NO_BRANCH};
	f.walk = (struct graph_walk){.layout = &f.layout, .heap = heap, .until_ns = ask->until_ns};
	heap->until_ns = ask->until_ns - ask->for_ns / 3;	/* the rest is for graphs */
	search(&f, heap);
	to->objects = f.s.n;
	to->whole = !heap->late && !f.s.full && !f.walk.late;
	to->bytes = f.tree.branch[0].bytes;
	to->blocks = f.tree.branch[0].blocks;
	if (f.layout.known) {
		remote_forget(heap->p->r);
		heap->late = false;
		heap->until_ns = ask->until_ns + PROOF_NS;
		choose(&f, 0);
		f.least = to->live_bytes / FINE + 1;
		if (!to->n)
			choose(&f, 0);
	} else {
		to->why = f.s.n_tensors ? "its tensors could not be read" : "no tensors were found in its objects";
	}
	graph_release(&f.walk);
	search_release(&f.s);
	free(f.end);
	free(f.tree.branch);
	free(f.tree.of_block);
}

static const char *why_not(int rc)
{
	return rc == -ESRCH ? "the process has ended" : "its memory may not be read";
}

void holders_find(struct holders *to, const struct holders_ask *ask, struct pool *pool)
{
	struct target t;
	struct remote r;
	struct pyproc p;
	struct pyheap heap;
	int rc = target_open(&t, ask->pid);

	*to = (struct holders){0};
	if (rc) {
		to->why = why_not(rc);
		return;
	}
	rc = remote_open(&r, ask->pid, t.n_maps ? t.map[0].start : 0);
	if (rc) {
		to->why = why_not(rc);
	} else {
		pyproc_open(&p, &t, &r);
		pyheap_open(&heap, &p, ask->until_ns);
		if (p.found)
			holders_search(to, ask, &heap, pool);
		else
			to->why = pool_strdup(pool, p.why);
		pyheap_close(&heap);
	}
	remote_release(&r);
	target_close(&t);
}
