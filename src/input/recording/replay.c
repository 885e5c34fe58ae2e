/* SPDX-License-Identifier: Apache-2.0
 * Plays a memory trace back to the model of PyTorch's allocator (see replay.h).
 *
 * The events become steps first, in which blocks have numbers instead of addresses: a what-if has addresses of its own. Where
 * PyTorch chooses by address, both orders in which a driver may give them out are played, and both ends of the sizes that were
 * not recorded; what all of them agree on is exact. Anybody may have written the events: nothing in them is trusted.
 */
#include "input/recording/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/card.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "input/recording/events.h"
#include "input/recording/trace_memory.h"

#define UNIT	   CW_EVENT_UNIT
#define MIB	   ((uint64_t)1 << 20)
#define PAGE	   (2 * MIB)		/* the driver's: an allocation takes whole ones */
#define LIVE_MAX   (1u << 24)
#define NAMES_MAX  255			/* streams, pools */
#define UNSPLIT	   MIB			/* a large block may be this much larger than its request */
#define NEWEST	   99			/* of an unknown release: taken for the newest one */

/* What the program does, and what is in use besides PyTorch's memory. */
enum step_kind { STEP_ALLOC, STEP_FREE, STEP_FREE_LATER, STEP_EMPTY, STEP_OOM, STEP_POOL, STEP_OUTSIDE };

struct step {
	uint64_t addr;
	uint32_t units;			/* its size; OUTSIDE: what is in use there */
	uint32_t block;			/* its number */
	uint32_t stack;			/* of whoever asked */
	uint32_t acts;			/* of the driver's, until it was done */
	uint16_t slack;			/* ALLOC: units by which the block was larger than the request */
	uint8_t kind;			/* enum step_kind */
	uint8_t stream, pool;		/* their numbers */
};

/* What PyTorch's allocator asked from the driver in the recording, and got. */
enum act_kind { ACT_SEGMENT, ACT_GONE, ACT_RESERVED, ACT_REFUSED };

struct act {
	uint64_t addr, size;
	enum act_kind kind;
};

struct live {
	uint64_t addr, size;
	uint32_t block;
	bool torch;			/* a segment of PyTorch's; among blocks: not used */
	bool page;			/* of an expandable segment */
	uint8_t stream, pool;		/* of a segment that was there at the start */
};

struct book {
	struct live *list;
	size_t n, cap;
	struct map map;
};

struct names {
	uint64_t name[NAMES_MAX + 1];
	size_t n;
};

/* What PyTorch had when the events begin: segments with their blocks, all by address; of expandable ones, where memory is. */
struct start_segment {
	uint64_t addr, size;
	uint8_t stream, pool;
	bool expandable;
	uint64_t page;			/* of an expandable one */
	size_t block, n_blocks;		/* into the lists below */
	size_t range, n_ranges;
	size_t age;			/* the oldest is adopted first */
};

struct start {
	struct start_segment *segment;
	size_t n, cap;
	struct allocator_held *held;
	uint32_t *number;		/* of the blocks */
	size_t n_held;
	struct allocator_range *range;
	size_t n_ranges, cap_ranges;
	uint64_t reserved;
	size_t steps, acts;		/* those that stand for it, if it is allocated anew */
};

struct replay {
	struct replay_facts facts;
	struct trace *trace;
	int device;
	struct step *step;
	size_t n, cap;
	struct act *act;
	size_t n_acts, cap_acts;
	uint32_t blocks;		/* numbers in use at most */
	struct names streams, pools;
	uint64_t began[REPLAY_INTERVALS];	/* ticks */
	size_t n_intervals, stride;	/* steps in an interval */
	bool sizes_known;
	struct start start;
};

const char *replay_doubt_text(enum replay_doubt doubt)
{
	static const char *const text[] = {
#define X(name, words) words,
		REPLAY_DOUBTS(X)
#undef X
	};

	return text[doubt];
}

static uint64_t step_size(const struct step *s)
{
	return (uint64_t)s->units * UNIT;
}

/* What was asked for, as far as it is known. */
static uint64_t step_asked(const struct step *s)
{
	return step_size(s) - (uint64_t)s->slack * UNIT;
}

/* Of a block whose request was not recorded: the least that it can have been. Smaller blocks fit exactly. */
static uint64_t step_least(const struct step *s)
{
	uint64_t size = step_size(s);

	return size <= MIB + UNIT ? size : size - UNSPLIT > MIB + UNIT ? size - UNSPLIT : MIB + UNIT;
}

/* ---- what is live, by address ---------------------------------------------------------------------- */

static bool live_same(const void *list, uint32_t i, const void *addr)
{
	return ((const struct live *)list)[i].addr == *(const uint64_t *)addr;
}

/* False: it was there already, or there are too many. */
static bool book_put(struct book *b, const struct live *one)
{
	uint32_t n = b->n < LIVE_MAX ? (uint32_t)b->n : MAP_NONE;

	if (map_put(&b->map, map_hash(one->addr), live_same, b->list, &one->addr, n) != n || n == MAP_NONE)
		return false;
	b->list = xgrow(b->list, b->n, &b->cap, sizeof(*b->list));
	b->list[b->n++] = *one;
	return true;
}

static bool book_take(struct book *b, uint64_t addr, struct live *gone)
{
	uint32_t i = map_take(&b->map, map_hash(addr), live_same, b->list, &addr);

	if (i == MAP_NONE)
		return false;
	*gone = b->list[i];
	if (i != --b->n) {	/* the last one fills the gap */
		b->list[i] = b->list[b->n];
		map_moved(&b->map, map_hash(b->list[i].addr), (uint32_t)b->n, i);
	}
	return true;
}

static void book_release(struct book *b)
{
	free(b->list);
	map_release(&b->map);
}

/* ---- from events to steps -------------------------------------------------------------------------- */

struct reading {
	struct replay *r;
	int device;
	const struct cw_site *site;
	size_t n_sites;
	struct book blocks, driver;
	struct start_segment *reserved_at;	/* ranges of expandable segments that were there at the start */
	size_t n_reserved, cap_reserved;
	uint32_t *unused;		/* numbers of blocks that were freed */
	size_t n_unused, cap_unused;
	uint64_t allocated, reserved, outside;	/* as recorded */
	bool outside_known;
	bool refused;			/* by the driver, since PyTorch's last block came or went */
	size_t emptied;			/* the step in which the cache was emptied since then, plus one; 0: it was not */
	uint8_t pool;
	uint64_t contradictions, lost;
	uint64_t ticks;			/* of the latest event so far */
};

/* How many steps there will be is not known: when the intervals are used up, every two become one. */
static void interval_begin(struct replay *r, uint64_t ticks)
{
	if (r->n_intervals == REPLAY_INTERVALS) {
		for (size_t i = 0; i < REPLAY_INTERVALS / 2; i++)
			r->began[i] = r->began[2 * i];
		r->n_intervals /= 2;
		r->stride *= 2;
	}
	r->began[r->n_intervals++] = ticks;
}

static struct step *step_add(struct reading *g, enum step_kind kind)
{
	struct replay *r = g->r;

	if (r->n == r->n_intervals * r->stride)
		interval_begin(r, g->ticks);
	r->step = xgrow(r->step, r->n, &r->cap, sizeof(*r->step));
	r->step[r->n] = (struct step){.kind = (uint8_t)kind, .acts = (uint32_t)r->n_acts};
	return &r->step[r->n++];
}

static void act_add(struct reading *g, enum act_kind kind, uint64_t addr, uint64_t size)
{
	struct replay *r = g->r;

	if (r->n_acts == UINT32_MAX)
		return;
	r->act = xgrow(r->act, r->n_acts, &r->cap_acts, sizeof(*r->act));
	r->act[r->n_acts++] = (struct act){addr, size, kind};
}

static uint32_t units_of(uint64_t bytes)
{
	uint64_t units = bytes / UNIT + (bytes % UNIT != 0);

	return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

/* Further ones share the last number: a doubt that shows when the recording is played again. */
static uint8_t name_number(struct names *s, uint64_t name)
{
	size_t i = 0;

	while (i < s->n && s->name[i] != name)
		i++;
	if (i == s->n && s->n < NAMES_MAX)
		s->name[s->n++] = name;
	return (uint8_t)(i < NAMES_MAX ? i : NAMES_MAX - 1);
}

static bool is_torch_segment(const struct reading *g, uint32_t site)
{
	const struct cw_site *s = site < g->n_sites ? &g->site[site] : NULL;
	const char *library = s && s->kind ? trace_string(g->r->trace, s->library) : "", *slash = strrchr(library, '/');

	return str_starts(slash ? slash + 1 : library, "libc10_cuda");
}

static enum cw_memory kind_of(const struct reading *g, const struct event *v)
{
	const struct cw_site *s = v->site && v->site < g->n_sites ? &g->site[v->site] : NULL;

	if (s && s->kind)
		return (enum cw_memory)s->kind;
	return v->device >= 0 ? CW_MEM_DEVICE : CW_MEM_RESERVED;
}

static uint64_t pages(uint64_t size)
{
	return size > UINT64_MAX - PAGE ? size : (size + PAGE - 1) / PAGE * PAGE;
}

static void outside_set(struct reading *g, uint64_t bytes)
{
	g->outside = bytes;
	step_add(g, STEP_OUTSIDE)->units = units_of(bytes);
	if (bytes > g->r->facts.outside)
		g->r->facts.outside = bytes;
}

static void read_free(struct reading *g, uint64_t free_bytes)
{
	uint64_t total = g->r->facts.total, used = free_bytes < total ? total - free_bytes : 0;

	outside_set(g, used > g->reserved ? used - g->reserved : 0);
	if (!g->outside_known)		/* what came before had it, too */
		for (size_t i = 0; i < g->r->n; i++)
			if (g->r->step[i].kind == STEP_OUTSIDE)
				g->r->step[i].units = units_of(g->outside);
	g->outside_known = true;
}

static uint32_t block_number(struct reading *g)
{
	return g->n_unused ? g->unused[--g->n_unused] : g->r->blocks++;
}

static void block_gone(struct reading *g, const struct live *one, bool later)
{
	step_add(g, later ? STEP_FREE_LATER : STEP_FREE)->block = one->block;
	g->unused = xgrow(g->unused, g->n_unused, &g->cap_unused, sizeof(*g->unused));
	g->unused[g->n_unused++] = one->block;
	g->allocated -= one->size;
	g->r->facts.steps++;
}

static void read_freed(struct reading *g, const struct event *v)
{
	struct live one;

	if (book_take(&g->blocks, v->addr, &one))
		block_gone(g, &one, v->later);
	else
		g->contradictions++;
}

/* PyTorch allocates to a graph's pool while it captures. */
static void read_pool(struct reading *g, uint64_t pool)
{
	uint8_t number = name_number(&g->r->pools, pool);

	if (number == g->pool)
		return;
	g->pool = number;
	step_add(g, STEP_POOL)->pool = number;
}

/* In backward, that of the forward line. */
static uint32_t site_stack(const struct reading *g, uint32_t site)
{
	const struct cw_site *s = site && site < g->n_sites ? &g->site[site] : NULL;

	return !s ? 0 : s->forward_stack ? s->forward_stack : s->stack;
}

static void read_made(struct reading *g, const struct event *v)
{
	struct live one = {.addr = v->addr, .size = v->size}, old;
	uint64_t slack = v->asked && v->asked < v->size ? (v->size - v->asked) / UNIT : 0;
	struct step *s;

	if (book_take(&g->blocks, v->addr, &old)) {
		block_gone(g, &old, false);
		g->contradictions++;
	}
	one.block = block_number(g);
	if (!v->size || !book_put(&g->blocks, &one)) {
		g->contradictions++;
		return;
	}
	read_pool(g, v->pool);
	s = step_add(g, STEP_ALLOC);
	s->addr = v->addr;
	s->units = units_of(v->size);
	s->block = one.block;
	s->stack = site_stack(g, v->site);
	s->slack = slack < UINT16_MAX ? (uint16_t)slack : UINT16_MAX;
	s->stream = name_number(&g->r->streams, v->stream);
	s->pool = g->pool;
	g->r->sizes_known &= v->asked != 0;
	g->allocated += v->size;
	g->r->facts.steps++;
	if (g->allocated > g->r->facts.peak_allocated)
		g->r->facts.peak_allocated = g->allocated;
}

static void segment_gone(struct reading *g, const struct live *one)
{
	if (!g->refused && !g->emptied) {	/* nothing made PyTorch release it but the program itself */
		step_add(g, STEP_EMPTY);
		g->emptied = g->r->n;
	}
	g->reserved -= one->size;
	act_add(g, ACT_GONE, one->addr, one->size);
	if (g->emptied)
		g->r->step[g->emptied - 1].acts = (uint32_t)g->r->n_acts;
}

static void read_took(struct reading *g, uint64_t addr)
{
	struct live one;

	if (!book_take(&g->driver, addr, &one))
		return;		/* other kinds of memory, and of other devices */
	if (one.torch)
		segment_gone(g, &one);
	else
		outside_set(g, g->outside > pages(one.size) ? g->outside - pages(one.size) : 0);
}

static void read_segment(struct reading *g, const struct event *v)
{
	act_add(g, ACT_SEGMENT, v->addr, v->size);
	g->reserved += v->size;
	if (g->reserved > g->r->facts.peak_reserved)
		g->r->facts.peak_reserved = g->reserved;
}

static void range_reserved(struct reading *g, const struct live *one)
{
	if (g->r->start.steps)
		return;
	g->reserved_at = xgrow(g->reserved_at, g->n_reserved, &g->cap_reserved, sizeof(*g->reserved_at));
	g->reserved_at[g->n_reserved++] = (struct start_segment){.addr = one->addr - 1,
								 .size = one->size,
								 .stream = one->stream,
								 .pool = one->pool,
								 .expandable = true};
}

static void read_gave(struct reading *g, const struct event *v)
{
	enum cw_memory kind = kind_of(g, v);
	struct live one = {.addr = v->addr,
			   .size = v->size,
			   .torch = is_torch_segment(g, v->site),
			   .page = kind == CW_MEM_VMM,
			   .stream = name_number(&g->r->streams, v->stream),
			   .pool = name_number(&g->r->pools, v->pool)},
		    old;

	if (kind == CW_MEM_RESERVED && one.torch) {
		act_add(g, ACT_RESERVED, v->addr - 1, v->size);
		range_reserved(g, &one);
	}
	if (v->device != g->device || v->size > UINT64_MAX / 2 ||
	    (kind != CW_MEM_DEVICE && kind != CW_MEM_VMM && kind != CW_MEM_ASYNC))
		return;
	if (book_take(&g->driver, v->addr, &old)) {
		g->contradictions++;
		g->reserved -= old.torch ? old.size : 0;
	}
	if (!book_put(&g->driver, &one))
		return;
	if (one.torch)
		read_segment(g, v);
	else
		outside_set(g, g->outside + pages(v->size));
}

/* ---- what was there at the start --------------------------------------------------------------------- */

#define ADDRESSES ((uint64_t)1 << 47)	/* of programs: the card's own reservations are above */

static int live_by_address(const void *a, const void *b)
{
	const struct live *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int segment_by_address(const void *a, const void *b)
{
	const struct start_segment *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int segment_by_age(const void *a, const void *b)
{
	const struct start_segment *x = a, *y = b;

	return x->age < y->age ? -1 : x->age > y->age;
}

static void start_add(struct start *s, const struct start_segment *one)
{
	s->segment = xgrow(s->segment, s->n, &s->cap, sizeof(*s->segment));
	s->segment[s->n++] = *one;
}

/* Ordinary segments, and ranges of expandable ones, without those that overlap: by address. */
static void start_segments(struct reading *g)
{
	struct start *s = &g->r->start;
	size_t n = 0;

	for (size_t i = 0; i < g->driver.n; i++) {
		const struct live *one = &g->driver.list[i];

		if (one->torch && !one->page)
			start_add(s, &(struct start_segment){.addr = one->addr,
							     .size = one->size,
							     .stream = one->stream,
							     .pool = one->pool,
							     .age = i});
	}
	for (size_t i = 0; i < g->n_reserved; i++)
		start_add(s, &g->reserved_at[i]);
	if (s->n)
		qsort(s->segment, s->n, sizeof(*s->segment), segment_by_address);
	for (size_t i = 0; i < s->n; i++) {
		const struct start_segment *one = &s->segment[i], *last = n ? &s->segment[n - 1] : NULL;

		if (!one->size || one->addr >= ADDRESSES || one->size > ADDRESSES - one->addr ||
		    (last && one->addr - last->addr < last->size))
			g->contradictions++;
		else
			s->segment[n++] = *one;
	}
	s->n = n;
}

/* The pages of an expandable segment that have memory, neighbors as one range. */
static void start_page(struct reading *g, struct start_segment *in, const struct live *page)
{
	struct start *s = &g->r->start;
	struct allocator_range *last = in->n_ranges ? &s->range[s->n_ranges - 1] : NULL;

	if (!page->size || page->size > in->size - (page->addr - in->addr) ||
	    (last && page->addr - last->addr < last->size)) {
		g->contradictions++;
		return;
	}
	s->reserved += page->size;
	if (last && last->addr + last->size == page->addr) {
		last->size += page->size;
		return;
	}
	s->range = xgrow(s->range, s->n_ranges, &s->cap_ranges, sizeof(*s->range));
	if (!in->n_ranges++) {
		in->range = s->n_ranges;
		in->page = page->size;
	}
	s->range[s->n_ranges++] = (struct allocator_range){page->addr, page->size};
}

static void start_pages(struct reading *g, struct live *pages, size_t n)
{
	struct start *s = &g->r->start;
	size_t k = 0;

	if (n)
		qsort(pages, n, sizeof(*pages), live_by_address);
	for (size_t i = 0; i < n; i++) {
		if (!pages[i].torch || !pages[i].page)
			continue;
		while (k < s->n && s->segment[k].addr + s->segment[k].size <= pages[i].addr)
			k++;
		if (k == s->n || pages[i].addr < s->segment[k].addr || !s->segment[k].expandable)
			g->contradictions++;
		else
			start_page(g, &s->segment[k], &pages[i]);
	}
}

static bool in_memory(const struct start *s, const struct start_segment *in, const struct live *b)
{
	if (!in->expandable)
		return true;
	for (size_t i = in->range; i < in->range + in->n_ranges; i++)
		if (b->addr >= s->range[i].addr && b->addr - s->range[i].addr < s->range[i].size)
			return b->size <= s->range[i].size - (b->addr - s->range[i].addr);
	return false;
}

/* Of each block, what was asked for is in the step that stands for it. */
static void start_blocks(struct reading *g, const struct live *blocks, size_t n, const struct step *const *step)
{
	struct start *s = &g->r->start;
	uint64_t end = 0;
	size_t k = 0;

	s->held = xcalloc(n + 1, sizeof(*s->held));
	s->number = xcalloc(n + 1, sizeof(*s->number));
	for (size_t i = 0; i < n; i++) {
		const struct live *b = &blocks[i];
		struct start_segment *in;

		while (k < s->n && s->segment[k].addr + s->segment[k].size <= b->addr)
			k++;
		in = k < s->n && b->addr >= s->segment[k].addr ? &s->segment[k] : NULL;
		if (!in || b->addr < end || b->size > in->size - (b->addr - in->addr) || !in_memory(s, in, b)) {
			g->contradictions++;
			continue;
		}
		end = b->addr + b->size;
		if (!in->n_blocks++)
			in->block = s->n_held;
		s->number[s->n_held] = b->block;
		s->held[s->n_held++] = (struct allocator_held){
			.addr = b->addr, .size = b->size, .requested = step_asked(step[b->block])};
	}
}

static struct live *live_copy(const struct book *b)
{
	struct live *list = xcalloc(b->n + 1, sizeof(*list));

	if (b->n)
		memcpy(list, b->list, b->n * sizeof(*list));
	return list;
}

/* The events begin here: what they have built so far was there before. */
static void read_start(struct reading *g, uint64_t before)
{
	struct replay *r = g->r;
	struct live *blocks = live_copy(&g->blocks), *driver = live_copy(&g->driver);
	const struct step **step = xcalloc((size_t)r->blocks + 1, sizeof(*step));

	if (r->start.steps)	/* once only */
		goto out;
	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC)
			step[r->step[i].block] = &r->step[i];
	start_segments(g);
	start_pages(g, driver, g->driver.n);
	if (g->blocks.n)
		qsort(blocks, g->blocks.n, sizeof(*blocks), live_by_address);
	start_blocks(g, blocks, g->blocks.n, step);
	for (size_t i = 0; i < r->start.n; i++)
		if (!r->start.segment[i].expandable)
			r->start.reserved += r->start.segment[i].size;
	if (r->start.n)
		qsort(r->start.segment, r->start.n, sizeof(*r->start.segment), segment_by_age);
	r->start.steps = r->n;
	r->start.acts = r->n_acts;
	r->facts.steps = 0;
	r->facts.before = before;
out:
	free(blocks);
	free(driver);
	free(step);
}

/* ---- events ----------------------------------------------------------------------------------------- */

/* The event has no site; the failure that was recorded with it has the stack. */
static uint32_t oom_stack(const struct reading *g, const struct event *v)
{
	const struct cw_failure *const *list;
	size_t n = trace_failures(g->r->trace, &list);
	uint32_t stack = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i]->source == CW_SRC_TORCH_OOM && list[i]->device == g->device &&
		    list[i]->ticks <= v->ticks + CW_EVENT_TICKS)
			stack = list[i]->stack;
	return stack;
}

static void read_oom(struct reading *g, const struct event *v)
{
	struct step *s = step_add(g, STEP_OOM);

	s->units = units_of(v->size);
	s->stack = oom_stack(g, v);
	g->r->facts.ran_out = true;
	if (!g->refused)
		g->r->facts.doubts |= 1u << REPLAY_LIMIT;
}

static void read_event(struct reading *g, const struct event *v)
{
	if (g->r->n == 1)	/* what was in use before has no time */
		g->r->began[0] = v->ticks;
	if (v->ticks > g->ticks)
		g->ticks = v->ticks;
	if (v->kind == CW_EVENT_LOST)
		g->lost += v->lost;
	else if (v->kind == CW_EVENT_MORE && v->more == CW_MORE_START)
		read_start(g, v->size);
	else if (v->kind == CW_EVENT_GAVE)
		read_gave(g, v);
	else if (v->kind == CW_EVENT_TOOK)
		read_took(g, v->addr);
	if (v->device != g->device)
		return;
	if (v->kind == CW_EVENT_MADE)
		read_made(g, v);
	else if (v->kind == CW_EVENT_FREED)
		read_freed(g, v);
	else if (v->kind == CW_EVENT_OOM)
		read_oom(g, v);
	else if (v->kind == CW_EVENT_MORE && v->more == CW_MORE_FREE)
		read_free(g, v->size);
	else if (v->kind == CW_EVENT_MORE && v->more == CW_MORE_POOL)
		read_pool(g, v->size);
	else if (v->kind == CW_EVENT_MORE && v->more == CW_MORE_REFUSED)
		act_add(g, ACT_REFUSED, 0, v->size);
	if (v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_FREED || v->kind == CW_EVENT_OOM) {
		g->refused = false;
		g->emptied = 0;
	} else if (v->kind == CW_EVENT_MORE && v->more == CW_MORE_REFUSED)
		g->refused = true;
}

/* The recorder counts the bytes that it gives to the file. */
static bool file_is_cut(const struct trace *t, size_t len)
{
	size_t size;
	const struct cw_events *ring = trace_chunk(t, CW_CHUNK_EVENTS, &size);

	return ring && size >= sizeof(*ring) && trace_header(t)->memory_trace_path[0] &&
	       len < sizeof(struct cw_events_file) + ring->head;
}

static int read_events(struct replay *r, const void *bytes, size_t len, int device, struct err *e)
{
	struct reading g = {.r = r, .device = device};
	struct events events;
	struct event v;
	int rc = events_begin(&events, bytes, len, e);

	if (rc)
		return rc;
	g.n_sites = trace_sites(r->trace, &g.site);
	name_number(&r->streams, 0);
	name_number(&r->pools, 0);
	r->sizes_known = true;
	r->stride = 1;
	outside_set(&g, 0);
	while (events_next(&events, &v)) {
		read_event(&g, &v);
		if (!r->facts.since && r->start.steps && v.kind != CW_EVENT_LOST && v.kind != CW_EVENT_MORE)
			r->facts.since = v.ticks;
	}
	for (size_t i = 0; i < r->n_intervals && r->began[i] < r->facts.since; i++)
		r->began[i] = r->facts.since;
	if (g.lost || file_is_cut(r->trace, len))
		r->facts.doubts |= 1u << REPLAY_LOST;
	if (g.contradictions)
		r->facts.doubts |= 1u << REPLAY_CONTRADICTION;
	if (!g.outside_known)
		r->facts.doubts |= 1u << REPLAY_OUTSIDE;
	book_release(&g.blocks);
	book_release(&g.driver);
	free(g.reserved_at);
	free(g.unused);
	return 0;
}

static void start_release(struct start *s)
{
	free(s->segment);
	free(s->held);
	free(s->number);
	free(s->range);
}

/* ---- one playback ---------------------------------------------------------------------------------- */

struct playing {
	const struct replay *r;
	struct allocator *a;
	struct allocator_block **block;		/* by number; NULL: not allocated */
	uint8_t pool;				/* of the capture in progress, 0: none */
};

static struct allocator_pool_id pool_id(uint8_t number)
{
	return (struct allocator_pool_id){number, 0};
}

static void playing_begin(struct playing *p, const struct replay *r, const struct allocator_settings *settings,
			  const struct allocator_driver *driver, uint64_t total)
{
	*p = (struct playing){.r = r, .a = allocator_new(r->facts.release, settings, driver, total)};
	p->block = xcalloc((size_t)r->blocks + 1, sizeof(*p->block));
}

static void playing_end(struct playing *p)
{
	allocator_free(p->a);
	free(p->block);
}

/* What was there at the start, where it was. */
static void playing_adopt(struct playing *p)
{
	const struct start *s = &p->r->start;
	struct allocator_held *held = xcalloc(s->n_held + 1, sizeof(*held));

	if (s->n_held)
		memcpy(held, s->held, s->n_held * sizeof(*held));
	for (size_t i = 0; i < s->n; i++) {
		const struct start_segment *g = &s->segment[i];

		if (g->expandable && !g->n_ranges)
			continue;
		allocator_adopt(p->a,
				&(struct allocator_segment){.addr = g->addr,
							    .size = g->size,
							    .stream = p->r->streams.name[g->stream],
							    .pool = pool_id(g->pool),
							    .small = (g->expandable ? g->page : g->size) == PAGE,
							    .mapped = g->expandable ? s->range + g->range : NULL,
							    .n_mapped = g->n_ranges},
				held + g->block, g->n_blocks);
	}
	for (size_t i = 0; i < s->n_held; i++)
		p->block[s->number[i]] = held[i].block;
	free(held);
}

/* Once it has begun, a capture's pool stays in use: graphs are seldom dropped. */
static void play_pool(struct playing *p, uint8_t pool)
{
	if (p->pool)
		allocator_pool_end(p->a, pool_id(p->pool));
	if (pool)
		allocator_pool_begin(p->a, pool_id(pool));
	allocator_set_captured(p->a, pool != 0);
	p->pool = pool;
}

static void play_free(struct playing *p, const struct step *s)
{
	struct allocator_block *b = p->block[s->block];

	if (!b)
		return;
	if (s->kind == STEP_FREE_LATER)
		allocator_record_stream(p->a, b, UINT64_MAX);
	allocator_delete(p->a, b);
	p->block[s->block] = NULL;
}

static struct allocator_block *play_alloc(struct playing *p, const struct step *s, uint64_t size)
{
	return allocator_alloc(p->a, size, p->r->streams.name[s->stream], pool_id(s->pool));
}

/* ---- the same again: the driver answers as it did ---------------------------------------------------- */

struct again {
	struct playing playing;
	size_t at, end;			/* the driver's acts that this step must call for */
	bool differs;
};

static const struct act *again_next(struct again *g, enum act_kind kind)
{
	const struct act *act = g->at < g->end ? &g->playing.r->act[g->at] : NULL;

	if (!act || act->kind != kind)
		return NULL;
	g->at++;
	return act;
}

static uint64_t again_alloc(void *of, uint64_t size, uint64_t stream)
{
	struct again *g = of;
	const struct act *act = again_next(g, ACT_REFUSED);

	(void)stream;
	if (act)
		return 0;
	act = again_next(g, ACT_SEGMENT);
	if (!act || act->size != size)
		g->differs = true;
	return act ? act->addr : 0;
}

/* Expandable segments are mapped and unmapped in several parts. */
static void again_free(void *of, uint64_t addr, uint64_t size)
{
	struct again *g = of;

	for (uint64_t done = 0; done < size && !g->differs;) {
		const struct act *act = again_next(g, ACT_GONE);

		g->differs |= !act || act->addr < addr || act->addr - addr >= size || !act->size;
		done += act ? act->size : size;
	}
}

static uint64_t again_reserve(void *of, uint64_t size, uint64_t page, uint64_t stream)
{
	struct again *g = of;
	const struct act *act = again_next(g, ACT_RESERVED);

	(void)page;
	(void)stream;
	if (!act || act->size != size)
		g->differs = true;
	return act ? act->addr : PAGE;
}

static void again_unreserve(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	(void)addr;
	(void)size;
}

static bool again_map(void *of, uint64_t addr, uint64_t size)
{
	struct again *g = of;

	if (again_next(g, ACT_REFUSED))
		return false;
	for (uint64_t done = 0; done < size && !g->differs;) {
		const struct act *act = again_next(g, ACT_SEGMENT);

		g->differs |= !act || act->addr != addr + done || !act->size;
		done += act ? act->size : size;
	}
	return true;
}

static void again_ask(struct again *g, const struct step *s)
{
	struct playing *p = &g->playing;
	struct allocator_block *b = play_alloc(p, s, step_asked(s));

	if (s->kind == STEP_OOM) {
		g->differs |= b != NULL;
		return;
	}
	p->block[s->block] = b;
	g->differs |= !b || allocator_block_addr(b) != s->addr || allocator_block_size(b) != step_size(s);
}

static void again_step(struct again *g, const struct step *s)
{
	struct playing *p = &g->playing;

	switch ((enum step_kind)s->kind) {
	case STEP_ALLOC:
	case STEP_OOM:
		again_ask(g, s);
		break;
	case STEP_FREE:
	case STEP_FREE_LATER:
		play_free(p, s);
		break;
	case STEP_EMPTY:
		allocator_empty_cache(p->a, pool_id(0));
		break;
	case STEP_POOL:
		play_pool(p, s->pool);
		return;
	case STEP_OUTSIDE:
		return;
	}
	g->differs |= g->at != g->end;
}

/* How many steps came out the same. */
static uint64_t play_again(const struct replay *r)
{
	struct again g = {.at = 0};
	struct allocator_driver driver = {
		.of = &g,
		.alloc = again_alloc,
		.free = again_free,
		.reserve = again_reserve,
		.unreserve = again_unreserve,
		.map = again_map,
		.unmap = again_free,
	};
	size_t i;

	playing_begin(&g.playing, r, &r->facts.settings, &driver, r->facts.total);
	playing_adopt(&g.playing);
	g.at = r->start.acts;
	for (i = r->start.steps; i < r->n && !g.differs; i++) {
		g.end = r->step[i].acts > g.at ? r->step[i].acts : g.at;
		again_step(&g, &r->step[i]);
	}
	playing_end(&g.playing);
	return i - g.differs;
}

/* ---- what if: a card answers ------------------------------------------------------------------------- */

/* One of the ways in which it can have gone. */
struct way {
	bool ascending;			/* the driver gives out addresses from the lowest up */
	bool least;			/* requests were as small as they can have been */
	bool anew;			/* what was there when the events begin had been allocated with the settings in question, one
					 * after the other */
};

struct what_if {
	struct playing playing;
	struct card card;
	uint64_t room;			/* of the card, for PyTorch */
	struct replay_answer *answer;
	const struct replay_question *q;
	bool over;
};

static void fail_at(struct what_if *w, size_t i, uint64_t request)
{
	const struct step *s = &w->playing.r->step[i];

	w->answer->fits = false;
	w->answer->failure =
		(struct replay_failure){.step = i + 1, .request = request, .free = w->card.free, .stack = s->stack};
	w->over = true;
}

static uint64_t room_beside(const struct replay_question *q, uint64_t outside)
{
	uint64_t more = q->outside_more > 0 ? (uint64_t)q->outside_more : 0;
	uint64_t less = q->outside_more < 0 ? (uint64_t)-q->outside_more : 0;
	uint64_t used = outside + more > less ? outside + more - less : 0;

	return q->total > used ? q->total - used : 0;
}

/* Others do not wait until PyTorch releases its cache. */
static void play_outside(struct what_if *w, size_t i)
{
	uint64_t room = room_beside(w->q, step_size(&w->playing.r->step[i])), taken = w->room - w->card.free;

	if (taken > room) {
		fail_at(w, i, 0);
		return;
	}
	w->room = room;
	w->card.free = room - taken;
}

static void play_ask(struct what_if *w, size_t i, bool least)
{
	struct playing *p = &w->playing;
	const struct step *s = &p->r->step[i];
	uint64_t size = least ? step_least(s) : step_asked(s);
	struct allocator_block *b = play_alloc(p, s, size);

	if (!b) {
		fail_at(w, i, size);
	} else if (s->kind == STEP_OOM) {
		w->answer->doubts |= 1u << REPLAY_BEYOND;
		w->answer->beside = w->card.free < w->answer->beside ? w->card.free : w->answer->beside;
		allocator_delete(p->a, b);
	} else {
		p->block[s->block] = b;
	}
	if (w->card.free < w->answer->spare)
		w->answer->spare = w->card.free;
}

static void what_if_step(struct what_if *w, size_t i, bool least)
{
	struct playing *p = &w->playing;
	const struct step *s = &p->r->step[i];

	switch ((enum step_kind)s->kind) {
	case STEP_ALLOC:
	case STEP_OOM:
		play_ask(w, i, least);
		break;
	case STEP_FREE:
	case STEP_FREE_LATER:
		play_free(p, s);
		break;
	case STEP_EMPTY:
		allocator_empty_cache(p->a, pool_id(0));
		break;
	case STEP_POOL:
		play_pool(p, s->pool);
		break;
	case STEP_OUTSIDE:
		play_outside(w, i);
		break;
	}
}

/* Since `peak`: a step may take memory and free it again. */
static uint64_t most_since(const struct allocator_amount *amount, uint64_t peak)
{
	return amount->peak > peak ? amount->peak : amount->now;
}

static void over_time_add(struct replay_over_time *o, size_t interval, uint64_t allocated, uint64_t reserved)
{
	if (interval >= o->n) {
		o->n = interval + 1;
		o->allocated[interval] = o->reserved[interval] = 0;
	}
	if (allocated > o->allocated[interval])
		o->allocated[interval] = allocated;
	if (reserved > o->reserved[interval])
		o->reserved[interval] = reserved;
}

/* False: the card is too small for it. Others take their part when the steps say so. */
static bool adopt_on_card(struct what_if *w)
{
	const struct start *s = &w->playing.r->start;

	for (size_t i = 0; i < s->n; i++)
		if (!s->segment[i].expandable && !card_adopt(&w->card, s->segment[i].addr, s->segment[i].size))
			return false;
	for (size_t i = 0; i < s->n_ranges; i++) {
		if (s->range[i].size > w->card.free)
			return false;
		w->card.free -= s->range[i].size;
	}
	playing_adopt(&w->playing);
	return true;
}

/* What others had in use then is among the steps that stand for the start. */
static void start_outside(struct what_if *w)
{
	const struct replay *r = w->playing.r;

	for (size_t i = 0; i < r->start.steps && !w->over; i++)
		if (r->step[i].kind == STEP_OUTSIDE)
			play_outside(w, i);
}

/* `o` may be NULL. */
static void play_way(const struct replay *r, const struct replay_question *q, struct way way, struct replay_answer *a,
		     struct replay_over_time *o)
{
	struct what_if w = {.answer = a, .q = q, .room = room_beside(q, 0)};
	size_t from = way.anew ? 0 : r->start.steps;
	const struct allocator_counters *c;
	struct allocator_driver driver;

	*a = (struct replay_answer){.fits = true, .spare = w.room, .beside = w.room};
	card_init(&w.card, w.room, way.ascending);
	driver = card_driver(&w.card);
	playing_begin(&w.playing, r, &q->settings, &driver, q->total);
	if (from)
		start_outside(&w);
	if (from && !w.over && !adopt_on_card(&w))
		fail_at(&w, from - 1, 0);
	c = allocator_counters(w.playing.a);
	if (o)
		o->n = 0;
	for (size_t i = 0; o && i < from; i += r->stride)	/* what was there when the events begin */
		over_time_add(o, i / r->stride, c->allocated.now, c->reserved.now);
	for (size_t i = from; i < r->n && !w.over; i++) {
		uint64_t allocated = c->allocated.peak, reserved = c->reserved.peak;

		what_if_step(&w, i, way.least);
		if (o)
			over_time_add(o, i / r->stride, most_since(&c->allocated, allocated),
				      most_since(&c->reserved, reserved));
	}
	a->peak_allocated = c->allocated.peak;
	a->peak_reserved = c->reserved.peak;
	a->retries = c->retries;
	if (a->retries)
		a->spare = 0;
	playing_end(&w.playing);
	card_release(&w.card);
}

static bool agree(const struct replay_answer *a, const struct replay_answer *b)
{
	return a->fits == b->fits && a->peak_reserved == b->peak_reserved && a->failure.step == b->failure.step;
}

/* The worse of two answers counts. True: that is the other. */
static bool answer_join(struct replay_answer *a, const struct replay_answer *other, enum replay_doubt why)
{
	unsigned doubts = a->doubts | other->doubts | (a->fits == other->fits ? 0 : 1u << why);
	unsigned figures = a->figures | other->figures | (agree(a, other) ? 0 : 1u << why);

	bool worse = a->fits != other->fits ? !other->fits : other->peak_reserved > a->peak_reserved;

	if (worse)
		*a = *other;
	a->doubts = doubts;
	a->figures = figures;
	return worse;
}

/* A doubt only where it decides. */
static void ask_unsure(const struct replay *r, const struct replay_question *q, struct replay_answer *a)
{
	struct replay_question other = *q;
	struct replay_answer at;

	other.outside_more += (int64_t)(a->fits ? q->unsure : 0 - q->unsure);
	play_way(r, &other, (struct way){.ascending = false}, &at, NULL);
	if (at.fits != a->fits)
		a->doubts |= 1u << REPLAY_CARD;
}

/* Where cuDNN's workspace does not fit, PyTorch takes an algorithm that needs less: it is no error. */
static bool may_fall_back(const struct replay *r, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(r->trace, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		if (str_ends(trace_string(r->trace, s->frame[i].file), "torch/nn/modules/conv.py"))
			return true;
	return false;
}

/* The card has room for all that PyTorch had reserved when the events begin. */
static bool start_has_room(const struct replay *r, const struct replay_question *q)
{
	uint64_t outside = 0;

	for (size_t i = 0; i < r->start.steps; i++)
		if (r->step[i].kind == STEP_OUTSIDE)
			outside = step_size(&r->step[i]);
	return room_beside(q, outside) >= r->start.reserved;
}

/* All ways are played; `o` has the one that counts.
 *
 * Where the first events are not known, what they left is played both where it was and allocated anew with the settings in question:
 * the truth is between the two. With the same settings it was where it was; on a card that is too small for that, nobody knows. */
static void ask_all_ways(const struct replay *r, const struct replay_question *q, struct replay_answer *a,
			 struct replay_over_time *o)
{
	bool has_room = start_has_room(r, q);
	const struct way descending = {.anew = !has_room}, ascending = {.ascending = true, .anew = !has_room},
			 least = {.least = true, .anew = !has_room}, anew = {.anew = true};
	const struct way *worst = NULL;
	struct replay_answer other;

	play_way(r, q, descending, a, o);
	play_way(r, q, ascending, &other, NULL);
	if (answer_join(a, &other, REPLAY_ADDRESSES))
		worst = &ascending;
	if (!r->sizes_known) {
		play_way(r, q, least, &other, NULL);
		if (answer_join(a, &other, REPLAY_SIZES))
			worst = &least;
	}
	if (!has_room && a->fits)
		a->doubts |= 1u << REPLAY_BEFORE;
	if (has_room && r->start.n_held && !allocator_settings_same(&r->facts.settings, &q->settings)) {
		play_way(r, q, anew, &other, NULL);
		if (answer_join(a, &other, REPLAY_BEFORE))
			worst = &anew;
	}
	if (o && worst)
		play_way(r, q, *worst, &other, o);
}

/* The largest demand of the whole run was before the first event that is known. */
static bool peak_unknown(const struct replay *r, const struct replay_question *q)
{
	const struct cw_memory_now *m = trace_memory(r->trace, r->device);

	return r->facts.before && m && m->peak_allocated > r->facts.peak_allocated &&
	       (!allocator_settings_same(&r->facts.settings, &q->settings) ||
		room_beside(q, r->facts.outside) < m->peak_reserved);
}

void replay_ask_over_time(const struct replay *r, const struct replay_question *q, struct replay_answer *a,
			  struct replay_over_time *o)
{
	ask_all_ways(r, q, a, o);
	if (a->fits && peak_unknown(r, q))
		a->doubts |= 1u << REPLAY_BEFORE;
	if (q->unsure)
		ask_unsure(r, q, a);
	if (!a->fits && may_fall_back(r, a->failure.stack))
		a->doubts |= 1u << REPLAY_FALLBACK;
	if (q->settings.unmodeled[0])
		a->doubts |= 1u << REPLAY_UNMODELED;
	a->doubts |= r->facts.doubts;
}

void replay_ask(const struct replay *r, const struct replay_question *q, struct replay_answer *a)
{
	replay_ask_over_time(r, q, a, NULL);
}

/* ---- the rest ----------------------------------------------------------------------------------------- */

int replay_settings(const struct replay *r, const char *words, struct allocator_settings *s, struct err *e)
{
	const char *own = r->facts.conf;
	char *text = xasprintf("%s%s%s", own, *own && *words ? "," : "", words);
	int rc;

	allocator_settings_init(s);
	rc = *text ? allocator_settings_parse(s, r->facts.release, text, e) : 0;
	free(text);
	return rc;
}

static void find_release(struct replay *r, const char *version)
{
	unsigned major = 2, minor = NEWEST;

	if (sscanf(version, "%u.%u", &major, &minor) != 2) {
		major = 2;
		minor = NEWEST;
	}
	r->facts.release = allocator_release_find(major, minor);
	if (r->facts.release && (r->facts.release->minor != minor || !r->facts.release->compared))
		r->facts.doubts |= 1u << REPLAY_RELEASE;
}

static int replay_read(struct replay *r, const void *bytes, size_t len, int device, struct err *e)
{
	const struct cw_header *h = trace_header(r->trace);
	int rc;

	r->facts.total = h->device[device].total_bytes;
	r->facts.conf = h->alloc_conf[0] == CW_NOT_SET[0] ? "" : h->alloc_conf;
	find_release(r, h->torch_version);
	if (!r->facts.release)
		return err_set(e, -ENOTSUP, "the allocator of PyTorch %s cannot be played back: it is too old",
			       h->torch_version);
	rc = replay_settings(r, "", &r->facts.settings, e);
	if (rc == 0)
		rc = read_events(r, bytes, len, device, e);
	if (rc == 0 && !r->facts.steps && !r->start.n_held)
		rc = err_set(e, -ENODATA, "PyTorch's allocator was not used on GPU %d, or it was not PyTorch's own",
			     device);
	return rc;
}

struct replay *replay_new(struct trace *t, const void *bytes, size_t len, int device, struct err *e)
{
	struct replay *r = xcalloc(1, sizeof(*r));

	r->trace = t;
	r->device = device;
	if (device < 0 || device >= CW_MAX_DEVICES || replay_read(r, bytes, len, device, e)) {
		replay_free(r);
		return NULL;
	}
	r->facts.same = play_again(r);
	if (r->facts.same < r->n)
		r->facts.doubts |= 1u << REPLAY_DIFFERS;
	return r;
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	free(r->step);
	free(r->act);
	start_release(&r->start);
	free(r);
}

const struct replay_facts *replay_facts(const struct replay *r)
{
	return &r->facts;
}

/* Freed before anything else was asked for. */
static bool is_brief(const struct replay *r, size_t step)
{
	size_t i = step + 1;

	while (i < r->n && r->step[i].kind != STEP_ALLOC && r->step[i].kind != STEP_OOM) {
		const struct step *s = &r->step[i++];

		if ((s->kind == STEP_FREE || s->kind == STEP_FREE_LATER) && s->block == r->step[step].block)
			return true;
	}
	return false;
}

size_t replay_requests(const struct replay *r, struct replay_request **list)
{
	struct replay_request *out = xcalloc(r->n + 1, sizeof(*out));
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC)
			out[n++] = (struct replay_request){step_asked(&r->step[i]), r->step[i].stack, is_brief(r, i)};
	*list = out;
	return n;
}

struct replay *replay_resized(const struct replay *r, const uint64_t *bytes)
{
	struct replay *out = xcalloc(1, sizeof(*out));

	*out = *r;
	out->act = NULL;		/* the driver's answers belong to the sizes that were recorded */
	out->n_acts = out->cap_acts = 0;
	out->step = xcalloc(r->n + 1, sizeof(*out->step));
	memcpy(out->step, r->step, r->n * sizeof(*out->step));
	for (size_t i = 0; i < r->n; i++)
		if (out->step[i].kind == STEP_ALLOC) {
			out->step[i].units = units_of(*bytes++);
			out->step[i].slack = 0;
		}
	return out;
}

struct replay_question replay_same(const struct replay *r)
{
	return (struct replay_question){.settings = r->facts.settings, .total = r->facts.total};
}

struct replay_intervals replay_intervals(const struct replay *r)
{
	return (struct replay_intervals){r->began, r->n_intervals, r->stride};
}

uint64_t replay_room(const struct replay *r, const struct replay_question *q)
{
	return room_beside(q, r->facts.outside);
}
