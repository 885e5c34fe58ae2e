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
#include "read/live/still.h"
#include "read/live/target.h"

#define SHARE		20u	/* a holder has at least one in so many of the bytes in use */
#define MOST_OF_IT	10u	/* below "[*]", a single name has all but one in so many */
#define SAMPLES		256u	/* tensors that PyTorch's layout is learned from */
#define PROOFS		3u	/* tensors of a holder whose whole way is read again */
#define PROOF_NS	150000000u
#define STOP_NS		5000000u	/* the same, while the process cannot go on */
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
	uint64_t gradients, used;	/* as in struct holder */
	uint32_t tensors, blocks;
	struct proof { uint32_t node; size_t block; } proof[PROOFS];	/* tensors: SIZE_MAX = the block is its graph's */
	uint32_t child, next;	/* first child; next of the same parent */
};

struct share { uint32_t stack; uint64_t bytes; };

struct tree {
	struct branch *branch;
	size_t n, cap;
	uint32_t *of_block;	/* the branch of each block's first tensor */
	uint64_t *used;		/* of each block: bytes in which tensors have elements */
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

/* The branch at the end of a way, and all that it comes from. */
static uint32_t tree_add(struct tree *t, const struct name_way *way)
{
	uint32_t at = 0;

	for (size_t i = 0; i <= way->n; i++) {
		t->branch[at].tensors++;
		if (i < way->n)
			at = branch_put(t, at, &way->step[i], way->root);
	}
	return at;
}

/* A few tensors of each branch, from all over it. */
static void remember(struct branch *b, struct proof p)
{
	b->proof[b->blocks < PROOFS ? b->blocks : PROOFS - 1] = p;
}

/* How a tensor leads to a block. */
enum by { BY_ITSELF, BY_GRAPH, BY_GRADIENT };

/* Each block counts once, for the first tensor that leads to it. */
static void tree_count(struct tree *t, uint32_t end, uint32_t node, size_t block, uint64_t bytes, enum by by)
{
	if (t->of_block[block])
		return;
	t->of_block[block] = end;
	for (uint32_t at = end; at != NO_BRANCH; at = t->branch[at].parent) {
		remember(&t->branch[at], (struct proof){node, by == BY_ITSELF ? block : SIZE_MAX});
		t->branch[at].blocks++;
		t->branch[at].gradients += by == BY_GRADIENT ? bytes : 0;
		t->branch[at].bytes += bytes;
		t->branch[at].graph += by != BY_ITSELF ? bytes : 0;
	}
}

struct candidate {
	struct holder h;
	uint32_t branch;
	uint64_t object;	/* 0 = there are several */
	bool holds;
};

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
	bool complete;		/* all objects were looked at */
	struct candidate *candidate;
	size_t n, cap;
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
			f->end[i] = tree_add(&f->tree, &way);
	}
}

static uint32_t site_flags(const struct holders_ask *ask, size_t block)
{
	uint32_t site = ask->block[block]->site;

	return site && site < ask->n_sites ? ask->site[site].flags : 0;
}

/* A tensor whose elements cannot be counted may have all of them. */
static void note_used(struct found *f, size_t block, uint64_t bytes)
{
	uint64_t size = f->ask->block[block]->size, *used = &f->tree.used[block];

	*used = !bytes || bytes > size - *used ? size : *used + bytes;
}

static void count_block(struct found *f, size_t tensor, size_t block, enum by by)
{
	if (f->end[tensor])
		tree_count(&f->tree, f->end[tensor], f->s.tensor[tensor], block, f->ask->block[block]->size, by);
}

static void count_graph(struct found *f, size_t tensor)
{
	graph_follow(&f->walk, tensor_impl(&f->layout, object_of(f, tensor)));
	for (size_t k = 0; k < f->walk.n_blocks; k++) {
		const struct graph_block *b = &f->walk.block[k];
		bool backward = site_flags(f->ask, b->block) & (CW_SITE_BACKWARD | CW_SITE_GRADIENT);

		if (!b->base && !b->first)
			note_used(f, b->block, b->used);
		count_block(f, tensor, b->block, b->gradient && backward ? BY_GRADIENT : BY_GRAPH);
	}
}

/* What tensors have themselves is theirs; then come graphs, which lead to the tensors of others, too. */
static void count_blocks(struct found *f, size_t from)
{
	for (size_t i = from; i < f->s.n_tensors; i++) {
		size_t block = tensor_block(&f->layout, object_of(f, i));

		if (block == SIZE_MAX)
			continue;
		note_used(f, block, tensor_elements(&f->layout, tensor_impl(&f->layout, object_of(f, i))));
		count_block(f, i, block, BY_ITSELF);
	}
	for (size_t i = from; i < f->s.n_tensors && !f->walk.late; i++)
		if (f->end[i])
			count_graph(f, i);
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

/* Tensors have elements in less than half of what they keep: others may have the rest. */
static bool hardly_used(const struct found *f)
{
	uint64_t used = 0;

	for (size_t i = 0; i < f->ask->n_blocks; i++)
		used += f->tree.of_block[i] ? f->tree.used[i] : 0;
	return f->layout.shape && used < f->tree.branch[0].bytes / 2;
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

static bool way_holds(struct found *f, const struct proof *p)
{
	uint32_t n = p->node;

	if (p->block != SIZE_MAX && tensor_block(&f->layout, f->s.node[n].object) != p->block)
		return false;
	for (; f->s.node[n].parent != NO_NODE; n = f->s.node[n].parent)
		if (!search_holds(&f->s, n))
			return false;
	return !f->ask->running || search_stands(&f->s, n);
}

/* In a program that runs, tensors come and go: one of them is enough to prove the way. */
static bool still_holds(struct found *f, const struct branch *b)
{
	for (uint32_t i = 0; i < PROOFS && i < b->blocks; i++)
		if (way_holds(f, &b->proof[i]) == f->ask->running)
			return f->ask->running;
	return !f->ask->running;
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

static bool describe(struct found *f, struct candidate *c)
{
	const struct branch *b = &f->tree.branch[c->branch];
	bool items = !strcmp(b->text, "[*]"), parts = !b->text[0];
	uint32_t named = (items && b->within) || parts ? b->parent : c->branch;
	char path[PATH_MAX_BYTES];
	struct py_frame frame;

	c->object = items ? b->within : f->tree.branch[named].object;
	if (!path_of(&f->tree, named, path, sizeof(path)))
		return false;
	c->h.path = pool_strdup(f->pool, path);
	c->h.kind = kind_name(f, c->object);
	c->h.stack = main_stack(f, c->branch);
	if (name_of_root(&f->s, b->root, &frame, f->pool)) {
		c->h.function = frame.function;
		c->h.file = frame.file;
		c->h.line = frame.line;
	}
	return true;
}

static void propose(struct found *f, uint32_t at, struct holder h)
{
	struct candidate c = {.h = h, .branch = at};

	if (at == 0 || !describe(f, &c))
		return;
	f->candidate = xgrow(f->candidate, f->n, &f->cap, sizeof(*f->candidate));
	f->candidate[f->n++] = c;
}

/* What a large child has is the child's; the rest is the branch's own, if it is large. */
static void choose(struct found *f, uint32_t at)
{
	struct branch *b = &f->tree.branch[at];
	bool items = !strcmp(b->text, "[*]");
	struct holder h = {.bytes = b->bytes, .graph = b->graph, .gradients = b->gradients, .used = b->used,
			   .tensors = b->tensors, .blocks = b->blocks};

	for (uint32_t i = b->child; i != NO_BRANCH; i = f->tree.branch[i].next) {
		const struct branch *c = &f->tree.branch[i];

		if (c->bytes < f->least || (items && c->bytes < h.bytes - h.bytes / MOST_OF_IT))
			continue;
		choose(f, i);
		h.bytes -= c->bytes;
		h.graph -= c->graph;
		h.gradients -= c->gradients;
		h.used -= c->used;
		h.tensors -= c->tensors;
		h.blocks -= c->blocks;
	}
	if (h.bytes >= f->least)
		propose(f, at, h);
}

/* Who else has tensors in the same memory is known only when all objects were looked at. */
static void count_used(struct found *f)
{
	for (size_t i = 0; f->layout.shape && f->complete && i < f->ask->n_blocks; i++)
		for (uint32_t at = f->tree.of_block[i]; at && at != NO_BRANCH; at = f->tree.branch[at].parent)
			f->tree.branch[at].used += f->tree.used[i];
}

static uint32_t unheld_flags(const struct holders_ask *ask, size_t block)
{
	const struct cw_allocation *a = ask->block[block];
	bool workspace = a->library && !(a->library & CW_BLOCK_DETAIL);

	return (site_flags(ask, block) & (CW_SITE_BACKWARD | CW_SITE_GRADIENT | CW_SITE_CAPTURED)) |
	       (workspace ? CW_UNHELD_WORKSPACE : 0);
}

static int by_source(const void *a, const void *b)
{
	const struct unheld *x = a, *y = b;

	return x->stack != y->stack ? (x->stack < y->stack ? -1 : 1) : (x->flags > y->flags) - (x->flags < y->flags);
}

static int by_size(const void *a, const void *b)
{
	const struct unheld *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : by_source(a, b);
}

/* Those to which no object leads, by where they were allocated. */
static void list_unheld(const struct found *f)
{
	struct unheld *list = xcalloc(f->ask->n_blocks + 1, sizeof(*list));
	size_t n = 0, kinds = 0;

	for (size_t i = 0; i < f->ask->n_blocks; i++)
		if (!f->tree.of_block[i])
			list[n++] = (struct unheld){f->ask->block[i]->size, 1, f->ask->block[i]->stack,
						    unheld_flags(f->ask, i)};
	xsort(list, n, sizeof(*list), by_source);
	for (size_t i = 0; i < n; i++)
		if (kinds && !by_source(&list[kinds - 1], &list[i])) {
			list[kinds - 1].bytes += list[i].bytes;
			list[kinds - 1].blocks++;
		} else {
			list[kinds++] = list[i];
		}
	xsort(list, kinds, sizeof(*list), by_size);
	for (size_t i = 0; i < kinds && i < UNHELD_MAX; i++)
		f->to->unheld[i] = list[i];
	free(list);
}

/* Reads all ways once more. */
static void prove(void *arg, bool again)
{
	struct found *f = arg;

	remote_forget(f->s.heap->p->r);
	f->s.heap->late = false;
	f->s.heap->until_ns = f->ask->running ? proc_mono_ns() + STOP_NS : f->ask->until_ns + PROOF_NS;
	for (size_t i = 0; i < f->n; i++) {
		struct candidate *c = &f->candidate[i];

		c->holds = (!again || c->holds) && still_holds(f, &f->tree.branch[c->branch]);
		c->h.length = 0;
		if (c->object && !pyheap_length(f->s.heap, c->object, &c->h.length))
			c->h.length = 0;
	}
}

static void prove_all(struct found *f)
{
	struct still s = {0};

	if (!f->ask->running)
		prove(f, false);
	else if (f->n && !while_still(f->s.heap->p, f->ask->pid, prove, f, &s))
		f->n = 0;
	f->to->stop_ns = s.stop_ns > f->to->stop_ns ? s.stop_ns : f->to->stop_ns;
	f->to->stops += s.stops;
}

static int by_bytes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->h.bytes < y->h.bytes ? 1 : x->h.bytes > y->h.bytes ? -1 : (x->branch > y->branch) - (x->branch < y->branch);
}

/* Those whose way was there when it was read again. */
static void find_holders(struct found *f, uint64_t least)
{
	f->n = 0;
	f->least = least;
	choose(f, 0);
	prove_all(f);
	xsort(f->candidate, f->n, sizeof(*f->candidate), by_bytes);
	for (size_t i = 0; i < f->n && f->to->n < HOLDERS_MAX; i++)
		if (f->candidate[i].holds)
			f->to->list[f->to->n++] = f->candidate[i].h;
		else
			f->to->changed++;
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
		f->complete = i == sizeof(more) / sizeof(more[0]) && !heap->late && !f->walk.late && !f->s.full;
		if ((nearly_all(f) && !hardly_used(f)) || heap->late || i == sizeof(more) / sizeof(more[0]))
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
	f.tree.of_block = xcalloc(ask->n_blocks + 1, sizeof(*f.tree.of_block));
	f.tree.used = xcalloc(ask->n_blocks + 1, sizeof(*f.tree.used));
	f.tree.branch = xgrow(NULL, 0, &f.tree.cap, sizeof(*f.tree.branch));
	f.tree.branch[f.tree.n++] =
		(struct branch){.text = "", .parent = NO_BRANCH, .child = NO_BRANCH, .next = NO_BRANCH};
	f.walk = (struct graph_walk){.layout = &f.layout, .heap = heap, .until_ns = ask->until_ns};
	heap->until_ns = ask->until_ns - ask->for_ns / 3;	/* the rest is for graphs */
	search(&f, heap);
	to->objects = f.s.n;
	to->bytes = f.tree.branch[0].bytes;
	to->blocks = f.tree.branch[0].blocks;
	to->whole = f.complete || to->blocks == to->live_blocks;
	if (f.layout.known) {
		count_used(&f);
		list_unheld(&f);
		heap->late = false;
		heap->until_ns = ask->until_ns + PROOF_NS;
		find_holders(&f, to->live_bytes / SHARE + 1);
		if (!to->n && !to->changed)
			find_holders(&f, to->live_bytes / FINE + 1);
	} else {
		to->why = f.s.n_tensors ? "its tensors could not be read" : "no tensors were found in its objects";
	}
	graph_release(&f.walk);
	search_release(&f.s);
	free(f.candidate);
	free(f.end);
	free(f.tree.branch);
	free(f.tree.of_block);
	free(f.tree.used);
}

static const char *why_not(int rc)
{
	return rc == -ESRCH ? "the process has ended" : "its memory may not be read";
}

static void search_process(struct holders *to, const struct holders_ask *ask, struct target *t, struct remote *r,
			   struct pool *pool)
{
	struct pyproc p;
	struct pyheap heap;

	pyproc_open(&p, t, r);
	pyheap_open(&heap, &p, ask->until_ns);
	if (p.found)
		holders_search(to, ask, &heap, pool);
	else
		to->why = pool_strdup(pool, p.why);
	pyheap_close(&heap);
}

void holders_find(struct holders *to, const struct holders_ask *ask, struct pool *pool)
{
	struct remote r = {.mem = -1};
	struct target t;
	int rc = target_open(&t, ask->pid);

	*to = (struct holders){0};
	if (!rc)
		rc = remote_open(&r, ask->pid, t.n_maps ? t.map[0].start : 0);
	if (rc) {
		to->refused = rc;
		to->why = why_not(rc);
	} else {
		search_process(to, ask, &t, &r, pool);
	}
	remote_release(&r);
	target_close(&t);
}
