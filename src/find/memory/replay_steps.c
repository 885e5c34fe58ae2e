/* SPDX-License-Identifier: Apache-2.0
 * From events to steps (see replay_steps.h).
 */
#include "find/memory/replay_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "find/memory/kinds.h"
#include "read/recording/events.h"
#include "read/recording/trace_memory.h"

#define MIB	   ((uint64_t)1 << 20)
#define PAGE	   (2 * MIB)		/* the driver's: an allocation takes whole ones */
#define LIVE_MAX   (1u << 24)

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

struct reading {
	struct replay *r;
	int device;
	const struct cw_site *site;
	size_t n_sites;
	struct kinds kinds;
	uint8_t *purpose;		/* of each site, plus one; 0: not asked for yet */
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

static int by_units(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void step_sizes_sort(struct step_sizes *s)
{
	xsort(s->list, s->n, sizeof(*s->list), by_units);
}

struct step_sizes steps_that_stay(const struct replay *r)
{
	struct step_sizes s = {xcalloc(r->n + 1, sizeof(*s.list)), 0};

	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC && step_stays(&r->step[i]))
			s.list[s.n++] = step_units(step_asked(&r->step[i]));
	step_sizes_sort(&s);
	return s;
}

bool step_sizes_have(const struct step_sizes *s, uint32_t units)
{
	return s->n && bsearch(&units, s->list, s->n, sizeof(*s->list), by_units);
}

static void act_add(struct reading *g, enum act_kind kind, uint64_t addr, uint64_t size)
{
	struct replay *r = g->r;

	if (r->n_acts == UINT32_MAX)
		return;
	r->act = xgrow(r->act, r->n_acts, &r->cap_acts, sizeof(*r->act));
	r->act[r->n_acts++] = (struct act){addr, size, kind};
}

uint32_t step_units(uint64_t bytes)
{
	uint64_t units = bytes / STEP_UNIT + (bytes % STEP_UNIT != 0);

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
	step_add(g, STEP_OUTSIDE)->units = step_units(bytes);
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
				g->r->step[i].units = step_units(g->outside);
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

static uint8_t site_purpose(struct reading *g, uint32_t site)
{
	if (!site || site >= g->n_sites)
		return KIND_OTHER;
	if (!g->purpose[site])
		g->purpose[site] = (uint8_t)(kinds_of_site(&g->kinds, site) + 1);
	return (uint8_t)(g->purpose[site] - 1);
}

static void read_made(struct reading *g, const struct event *v)
{
	struct live one = {.addr = v->addr, .size = v->size}, old;
	uint64_t slack = v->asked && v->asked < v->size ? (v->size - v->asked) / STEP_UNIT : 0;
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
	s->units = step_units(v->size);
	s->block = one.block;
	s->stack = site_stack(g, v->site);
	s->purpose = site_purpose(g, v->site);
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
	xsort(s->segment, s->n, sizeof(*s->segment), segment_by_address);
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

	xsort(pages, n, sizeof(*pages), live_by_address);
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
	xsort(blocks, g->blocks.n, sizeof(*blocks), live_by_address);
	start_blocks(g, blocks, g->blocks.n, step);
	for (size_t i = 0; i < r->start.n; i++)
		if (!r->start.segment[i].expandable)
			r->start.reserved += r->start.segment[i].size;
	xsort(r->start.segment, r->start.n, sizeof(*r->start.segment), segment_by_age);
	r->start.steps = r->n;
	r->start.acts = r->n_acts;
	r->facts.steps = 0;
	r->facts.before = before;
out:
	free(blocks);
	free(driver);
	free(step);
}

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

	s->units = step_units(v->size);
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

/* What a library was given for as long as it lives: its code looks like that of any other request. */
static void name_workspaces(struct reading *g)
{
	struct replay *r = g->r;
	struct pieces p;

	pieces_of_torch(&p, r->trace, UINT64_MAX);
	for (size_t i = 0; i < p.n; i++) {
		size_t k = p.list[i].workspace && p.list[i].device == g->device ? r->n : 0;

		while (k > 0 && (r->step[k - 1].kind != STEP_ALLOC || r->step[k - 1].addr != p.list[i].addr))
			k--;
		if (k > 0)
			r->step[k - 1].purpose = KIND_WORKSPACES;
	}
	pieces_free(&p);
}

/* The recorder counts the bytes that it gives to the file. */
static bool file_is_cut(const struct trace *t, size_t len)
{
	size_t size;
	const struct cw_events *ring = trace_chunk(t, CW_CHUNK_EVENTS, &size);

	return ring && size >= sizeof(*ring) && trace_header(t)->memory_trace_path[0] &&
	       len < sizeof(struct cw_events_file) + ring->head;
}

int steps_read(struct replay *r, const void *bytes, size_t len, int device, struct err *e)
{
	struct reading g = {.r = r, .device = device};
	struct pool pool = {0};
	struct events events;
	struct event v;
	int rc = events_begin(&events, bytes, len, e);

	if (rc)
		return rc;
	g.n_sites = trace_sites(r->trace, &g.site);
	g.purpose = pool_alloc(&pool, g.n_sites + 1);
	kinds_init(&g.kinds, r->trace, NULL, false, &pool);
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
	name_workspaces(&g);
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
	pool_release(&pool);
	return 0;
}

void steps_release(struct replay *r)
{
	free(r->step);
	free(r->act);
	free(r->start.segment);
	free(r->start.held);
	free(r->start.number);
	free(r->start.range);
}
