/* SPDX-License-Identifier: Apache-2.0
 * What each piece of memory is for (see kinds.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "find/memory/playback.h"
#include "find/memory/kinds.h"
#include "find/failure/place.h"
#include "read/recording/trace_memory.h"

void moment_init(struct moment *m, struct trace *t, uint64_t when, int device)
{
	size_t n = 0;

	*m = (struct moment){.when = when, .device = device};
	pieces_of_torch(&m->torch, t, when);
	for (size_t i = 0; i < m->torch.n; i++)
		if (m->torch.list[i].device == device)
			m->torch.list[n++] = m->torch.list[i];
	m->torch.n = n;
	pieces_of_driver_at(&m->driver, t, when);
}

static int held_by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* `device` -1 = all of them. */
static void held_copy(struct pieces *to, const struct held_book *from, int device)
{
	to->list = xcalloc(from->n + 1, sizeof(*to->list));
	to->n = 0;
	for (size_t i = 0; i < from->n; i++)
		if (device < 0 || from->list[i].piece.device == device)
			to->list[to->n++] = from->list[i].piece;
	xsort(to->list, to->n, sizeof(*to->list), held_by_address);
}

void moment_from(struct moment *m, const struct playback *play, int device)
{
	*m = (struct moment){.when = play->ticks, .device = device};
	held_copy(&m->torch, &play->torch, device);
	held_copy(&m->driver, &play->driver, -1);
}

void moment_free(struct moment *m)
{
	pieces_free(&m->torch);
	pieces_free(&m->driver);
}

static int order_of_sites(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_asked(const struct cw_site *a, const struct cw_site *b)
{
	int c = order_of_sites(a->stack, b->stack);

	c = c ? c : order_of_sites(a->forward_stack, b->forward_stack);
	c = c ? c : order_of_sites(a->kind, b->kind);
	return c ? c : order_of_sites((uint64_t)(a->device + 2), (uint64_t)(b->device + 2));
}

static int by_asked(const void *a, const void *b, void *sites)
{
	const struct cw_site *site = sites;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = compare_asked(&site[x], &site[y]);

	return c ? c : order_of_sites(x, y);
}

static void order_sites(struct kinds *k, struct pool *pool)
{
	uint32_t *order;

	k->n = trace_sites(k->trace, &k->site);
	order = pool_alloc(pool, (k->n + 1) * sizeof(*order));
	for (size_t i = 0; i < k->n; i++)
		order[i] = (uint32_t)i;
	if (k->n)
		qsort_r(order, k->n, sizeof(*order), by_asked, (void *)(uintptr_t)k->site);
	k->order = order;
}

static const struct cw_site *find_site(const struct kinds *k, const struct piece *p)
{
	struct cw_site want = {
		.stack = p->stack, .forward_stack = p->forward_stack, .kind = p->kind, .device = (int16_t)p->device};
	size_t low = 0, high = k->n;

	if (p->site && p->site < k->n && k->site[p->site].kind)
		return &k->site[p->site];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_asked(&k->site[k->order[middle]], &want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < k->n && !compare_asked(&k->site[k->order[low]], &want) && want.kind)
		return &k->site[k->order[low]];
	return NULL;
}

/* Sites of one stack follow each other in `order`. */
uint64_t kinds_first_ticks(const struct kinds *k, const struct piece *p)
{
	struct piece any = *p;
	const struct cw_site *s;
	uint64_t first = 0;
	size_t at = 0;

	any.site = 0;
	s = find_site(k, &any);
	while (s && k->order[at] != (uint32_t)(s - k->site))
		at++;
	for (; s && at < k->n && compare_asked(&k->site[k->order[at]], s) == 0; at++) {
		uint64_t ticks = k->site[k->order[at]].first_ticks;

		first = ticks && (!first || ticks < first) ? ticks : first;
	}
	return first;
}

struct piece piece_of_site(const struct kinds *k, size_t site)
{
	const struct cw_site *s = &k->site[site];

	return (struct piece){ .stack = s->stack, .forward_stack = s->forward_stack, .device = s->device, .kind = s->kind,
			      .site = (uint32_t)site,
			      .ticks = s->first_ticks};
}

/* Each run of a notebook cell has another file name: "<cell 12>", "<ipython-input-3-a1b2c3>". */
static uint64_t file_number(const struct trace *t, uint32_t file)
{
	const char *name = trace_string(t, file);

	return name[0] == '<' ? strcspn(name, "0123456789") : file;
}

uint64_t lines_hash(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	uint64_t hash = 14695981039346656037ull;

	for (uint32_t i = 0; s && i < s->n; i++) {
		if (i && s->frame[i].file == s->frame[i - 1].file && s->frame[i].line == s->frame[i - 1].line)
			continue;
		hash = (hash ^ file_number(t, s->frame[i].file)) * 1099511628211ull;
		hash = (hash ^ s->frame[i].line) * 1099511628211ull;
	}
	return s ? hash : 0;
}

static int by_number(const void *a, const void *b)
{
	return order_of_sites(*(const uint64_t *)a, *(const uint64_t *)b);
}

static void collect_nodes(struct kinds *k, struct pool *pool)
{
	const struct trace_node *node;
	size_t n = trace_nodes(k->trace, &node), kept = 0;
	uint64_t *stacks = pool_alloc(pool, (n + 1) * sizeof(*stacks));

	for (size_t i = 0; i < n; i++)
		stacks[i] = lines_hash(k->trace, node[i].stack);
	xsort(stacks, n, sizeof(*stacks), by_number);
	for (size_t i = 0; i < n; i++)
		if (!kept || stacks[kept - 1] != stacks[i])
			stacks[kept++] = stacks[i];
	k->nodes = stacks;
	k->n_nodes = kept;
}

/* Checkpointed code is recomputed on backward's threads, below a frame of its own. */
static bool is_recomputed(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		if (str_ends(trace_string(t, s->frame[i].file), "torch/utils/checkpoint.py") &&
		    !strcmp(function_base(trace_string(t, s->frame[i].function)), "unpack_hook"))
			return true;
	return false;
}

static const struct made_by {
	enum ledger_kind kind;
	const char *path, *function;
} patterns[] = {
#define MADE_BY(kind, path, function) {KIND_##kind, path, function},
#include "kb/memory_kinds.def"
#undef MADE_BY
};

static bool frame_fits(const struct made_by *m, const char *file, const char *function)
{
	return strstr(file, m->path) && (m->function[0] == '*' || !strcmp(function_base(function), m->function));
}

static enum ledger_kind kind_of_stack(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++) {
		const char *file = trace_string(t, s->frame[i].file), *function = trace_string(t, s->frame[i].function);

		if (stack_owner(t, s, i) == OWNER_USER ||
		    !strcmp(function_base(function), "_call_impl"))
			break;	/* a model is called: its callers do not matter */
		for (size_t m = 0; m < sizeof(patterns) / sizeof(patterns[0]); m++)
			if (frame_fits(&patterns[m], file, function))
				return patterns[m].kind;
	}
	return KIND_OTHER;
}

#define MEMO_LEAST 4096u	/* powers of two */
#define MEMO_MOST (1u << 18)

#define MEMO_TRIES 8u

static bool about_is(const struct about *a, const struct piece *p)
{
	return a->stack == p->stack && a->forward_stack == p->forward_stack && a->site == p->site &&
	       a->memory == p->kind && a->device == p->device;
}

/* Its slot, or a free one; a crowded table forgets entries. */
static struct about *memo_of(struct kinds *k, const struct piece *p)
{
	uint64_t hash = ((uint64_t)p->stack << 32 | p->forward_stack) + p->site * 0x9e3779b97f4a7c15u + p->kind;
	uint32_t at;

	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
	at = (uint32_t)(hash >> 32);
	for (uint32_t i = 0; i < MEMO_TRIES; i++) {
		struct about *a = &k->memo[(at + i) & k->memo_mask];

		if (!a->known || about_is(a, p))
			return a;
	}
	return &k->memo[at & k->memo_mask];
}

const struct about *kinds_about(struct kinds *k, const struct piece *p)
{
	struct about *a = memo_of(k, p);
	const struct cw_site *s;

	if (a->known && about_is(a, p))
		return a;
	s = find_site(k, p);
	*a = (struct about){ .stack = p->stack, .forward_stack = p->forward_stack, .site = p->site, .known = true,
			    .memory = p->kind,
			    .device = p->device,
			    .asked = s,
			    .kind = kind_of_stack(k->trace, p->stack),
			    .lines = lines_hash(k->trace, p->stack)};
	a->node = a->lines && k->n_nodes && bsearch(&a->lines, k->nodes, k->n_nodes, sizeof(*k->nodes), by_number);
	a->backward = p->forward_stack || (s && (s->flags & (CW_SITE_BACKWARD | CW_SITE_GRADIENT))) ||
		      stack_in_backward(k->trace, p->stack) || is_recomputed(k->trace, p->stack);
	if (!p->forward_stack || !place_of_stack(k->trace, p->forward_stack, &a->place))
		place_of_stack(k->trace, p->stack, &a->place);
	return a;
}

/* What was freed since has lost its library, but not its site. */
uint32_t kinds_library(struct kinds *k, const struct piece *p)
{
	const struct about *a = p->library ? NULL : kinds_about(k, p);

	return p->library ? p->library : a->asked ? a->asked->library : 0;
}

/* Backward frees its temporaries before it ends: what is left afterwards is gradients. */
enum ledger_kind kinds_of(struct kinds *k, const struct piece *p)
{
	const struct about *a = kinds_about(k, p);

	if (p->workspace)
		return KIND_WORKSPACES;
	if (a->asked && (a->asked->flags & CW_SITE_CAPTURED))
		return KIND_GRAPHS;
	if (a->asked && (a->asked->flags & CW_SITE_GRADIENT))
		return KIND_GRADIENTS;
	if (a->kind != KIND_OTHER && (!a->backward || a->kind == KIND_GRADIENTS))
		return a->kind;
	if (a->backward)	/* an optimizer may call the closure that runs backward */
		return p->ticks < k->last_forward ? KIND_GRADIENTS : KIND_BACKWARD;
	return a->node ? KIND_ACTIVATIONS : KIND_OTHER;
}

/* A site has no single time. It is taken as newer than any forward, so that age alone never makes it gradients. */
enum ledger_kind kinds_of_site(struct kinds *k, size_t site)
{
	struct piece p = piece_of_site(k, site);

	p.ticks = UINT64_MAX;
	return kinds_of(k, &p);
}

/* Outside of backward, what backward left is gradients; while one runs, only what existed before it began. */
uint64_t gradients_among(const struct cw_epoch *epochs, const uint64_t *held, size_t at)
{
	size_t before = at;

	while (before > 0 && (epochs[before].flags & CW_EPOCH_BACKWARD))
		before--;
	if (epochs[before].flags & CW_EPOCH_BACKWARD)
		return 0;
	return held[before] < held[at] ? held[before] : held[at];
}

bool ledger_in_backward(const struct trace *t, const struct cw_failure *f)
{
	return f ? failure_in_backward(t, f) : !trace_header(t)->exit_known;
}

static void note_forward(struct kinds *k, const struct pieces *live, uint64_t when, int device)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(k->trace, &f);

	for (size_t i = 0; i < live->n; i++)
		if (live->list[i].ticks > k->last_forward && live->list[i].device == device &&
		    !kinds_about(k, &live->list[i])->backward)
			k->last_forward = live->list[i].ticks;
	for (size_t i = 0; i < n; i++) {
		struct piece p = { .stack = f[i]->stack, .forward_stack = f[i]->forward_stack, .kind = f[i]->kind,
				  .device = f[i]->device};

		if (p.kind == CW_MEM_TORCH && p.device == device && f[i]->made_ticks <= when &&
		    f[i]->made_ticks > k->last_forward && !kinds_about(k, &p)->backward)
			k->last_forward = f[i]->made_ticks;
	}
}

static void begin(struct kinds *k, struct trace *t, struct pool *pool)
{
	uint32_t slots;

	*k = (struct kinds){.trace = t};
	order_sites(k, pool);
	for (slots = MEMO_LEAST; slots < MEMO_MOST && slots < 2 * k->n; slots *= 2)
		;
	k->memo = pool_alloc(pool, slots * sizeof(*k->memo));
	k->memo_mask = slots - 1;
	collect_nodes(k, pool);
}

void kinds_init(struct kinds *k, struct trace *t, const struct moment *m, bool in_backward, struct pool *pool)
{
	begin(k, t, pool);
	if (in_backward)
		note_forward(k, &m->torch, m->when, m->device);
	else
		k->last_forward = UINT64_MAX;
}

void kinds_from(struct kinds *k, struct trace *t, const struct playback *play, int device, struct pool *pool)
{
	begin(k, t, pool);
	for (size_t i = 1; i < k->n && i < play->n_sites; i++) {
		struct piece p = piece_of_site(k, i);

		if (p.device == device && play->made[i] > k->last_forward && !kinds_about(k, &p)->backward)
			k->last_forward = play->made[i];
	}
}
