/* SPDX-License-Identifier: Apache-2.0
 * Stream capture: launches that go into a graph run later, perhaps hours later, so they are kept outside
 * the rings for as long as the graph, or anything instantiated from it, exists.
 */
#include <string.h>

#include "rec.h"
#include "rec_segment.h"

#define MAX_CAPTURES	1024
#define PAGE_LAUNCHES	256
#define MAX_PAGES	96

struct capture {
	uint32_t id;			/* 0 = free */
	uint32_t stack;
	uint64_t stream;
	uint64_t graph;
	uint32_t execs;
	bool active, graph_alive;
};

static struct {
	struct capture capture[MAX_CAPTURES];
	struct { uint64_t exec; uint32_t id; } exec[MAX_CAPTURES];
	struct { struct cw_ring *ring; uint32_t id; } page[MAX_PAGES];
	uint32_t n_pages, next_id;
} g;

void graph_start(void)
{
	memset(&g, 0, sizeof(g));
}

static struct capture *by_id(uint32_t id)
{
	for (int i = 0; i < MAX_CAPTURES; i++)
		if (g.capture[i].id == id)
			return &g.capture[i];
	return NULL;
}

/* The capture of this stream, else the newest: the stream may have joined by waiting for an event. */
static struct capture *active_on(uint64_t stream)
{
	struct capture *newest = NULL;

	for (int i = 0; i < MAX_CAPTURES; i++) {
		struct capture *c = &g.capture[i];

		if (!c->id || !c->active)
			continue;
		if (c->stream == stream)
			return c;
		if (!newest || c->id > newest->id)
			newest = c;
	}
	return newest;
}

static void forget_if_unused(struct capture *c)
{
	if (c->active || c->graph_alive || c->execs)
		return;
	for (uint32_t i = 0; i < g.n_pages; i++) {
		if (g.page[i].id != c->id)
			continue;
		g.page[i].ring->head = 0;
		g.page[i].id = 0;
	}
	memset(c, 0, sizeof(*c));
}

void capture_begin(uint64_t stream, uint32_t stack)
{
	struct capture *c;

	atomic_fetch_add(&rec.captures, 1);
	if (!spin_try(&graph_lock))
		return;
	c = by_id(0);
	if (c) {
		shared_set(&g.next_id, g.next_id + 1);	/* capture_newest() takes no lock */
		*c = (struct capture){.id = g.next_id, .stack = stack, .stream = stream, .active = true};
	}
	spin_done(&graph_lock);
}

uint32_t capture_newest(void)
{
	return atomic_load(&rec.captures) ? __atomic_load_n(&g.next_id, __ATOMIC_RELAXED) : 0;
}

/* A stream goes, and with it the capture that was in progress there. */
void capture_abandon(uint64_t stream)
{
	bool active;

	if (!atomic_load(&rec.captures) || !spin_try(&graph_lock))
		return;
	active = active_on(stream) != NULL;
	spin_done(&graph_lock);
	if (active)
		capture_end(stream, 0);
}

void capture_end(uint64_t stream, uint64_t graph)
{
	struct capture *c;

	if (atomic_load(&rec.captures))
		atomic_fetch_sub(&rec.captures, 1);
	if (!spin_try(&graph_lock))
		return;
	c = active_on(stream);
	if (c) {
		c->active = false;
		c->graph = graph;
		c->graph_alive = graph != 0;
		forget_if_unused(c);
	}
	spin_done(&graph_lock);
}

void capture_instantiated(uint64_t graph, uint64_t exec)
{
	bool captured = false;

	if (!spin_try(&graph_lock))
		return;
	for (int i = 0; i < MAX_CAPTURES; i++) {
		struct capture *c = &g.capture[i];

		if (!c->id || !c->graph_alive || c->graph != graph)
			continue;
		captured = true;
		for (int k = 0; k < MAX_CAPTURES; k++) {
			if (g.exec[k].exec)
				continue;
			g.exec[k].exec = exec;
			g.exec[k].id = c->id;
			c->execs++;
			break;
		}
		break;
	}
	spin_done(&graph_lock);
	if (!captured)		/* built node by node: its kernels are not known */
		atomic_store(&look_graphs, true);
}

bool capture_made(uint64_t exec)
{
	bool made = false;

	if (!spin_try(&graph_lock))
		return false;
	for (int k = 0; k < MAX_CAPTURES && !made; k++)
		made = g.exec[k].exec == exec;
	spin_done(&graph_lock);
	return made;
}

void capture_graph_gone(uint64_t graph)
{
	if (!spin_try(&graph_lock))
		return;
	for (int i = 0; i < MAX_CAPTURES; i++) {
		struct capture *c = &g.capture[i];

		if (c->id && c->graph_alive && c->graph == graph) {
			c->graph_alive = false;
			forget_if_unused(c);
		}
	}
	spin_done(&graph_lock);
}

void capture_exec_gone(uint64_t exec)
{
	struct capture *c;

	if (!spin_try(&graph_lock))
		return;
	for (int k = 0; k < MAX_CAPTURES; k++) {
		if (g.exec[k].exec != exec)
			continue;
		c = by_id(g.exec[k].id);
		g.exec[k].exec = 0;
		if (c && c->execs) {
			c->execs--;
			forget_if_unused(c);
		}
		break;
	}
	spin_done(&graph_lock);
}

bool capture_between(uint32_t first, uint32_t last)
{
	bool there = last == CAPTURE_UNKNOWN;

	if (there || !spin_try(&graph_lock))
		return true;
	for (int i = 0; i < MAX_CAPTURES && !there; i++)
		there = g.capture[i].id >= first && g.capture[i].id <= last && g.capture[i].id;
	spin_done(&graph_lock);
	return there;
}

static bool is_captured(uint64_t stream)
{
	int status = 0;

	return drv.cuStreamIsCapturing && drv.cuStreamIsCapturing((void *)stream, &status) == 0 && status;
}

uint32_t capture_of(uint64_t stream)
{
	struct capture *c;
	uint32_t id = CAPTURE_UNKNOWN;

	if (!atomic_load(&rec.captures) || !is_captured(stream))
		return 0;
	if (!spin_try(&graph_lock))
		return id;
	c = active_on(stream);
	if (c)
		id = c->id;
	spin_done(&graph_lock);
	return id;
}

uint32_t capture_stack(void)
{
	struct capture *c = NULL;
	uint32_t stack = 0;

	if (!spin_try(&graph_lock))
		return 0;
	c = active_on(0);
	if (c)
		stack = c->stack;
	spin_done(&graph_lock);
	return stack;
}

static struct cw_ring *page_for(uint32_t id)
{
	struct cw_ring *r;
	uint32_t unused = MAX_PAGES;

	for (uint32_t i = 0; i < g.n_pages; i++) {
		if (g.page[i].id == id && g.page[i].ring->head < PAGE_LAUNCHES)
			return g.page[i].ring;
		if (!g.page[i].id)
			unused = i;
	}
	if (unused == MAX_PAGES) {
		r = g.n_pages < MAX_PAGES ? ring_new(CW_CHUNK_GRAPHS, sizeof(struct cw_launch), PAGE_LAUNCHES) : NULL;
		if (!r)
			return NULL;
		unused = g.n_pages++;
		g.page[unused].ring = r;
	}
	g.page[unused].id = id;
	return g.page[unused].ring;
}

/* `l` is the slot being filled, its seq not yet written. */
void capture_keep(struct cw_launch *l, uint64_t stream)
{
	struct cw_launch *copy;
	struct capture *c;
	struct cw_ring *r;

	if (!is_captured(stream))
		return;
	l->flags |= CW_LAUNCH_CAPTURED;
	if (!function_stock(l->func))
		atomic_store(&look_graphs, true);
	if (!spin_try(&graph_lock))
		return;
	c = active_on(stream);
	r = c ? page_for(c->id) : NULL;
	if (r) {
		l->result = c->id;
		copy = (struct cw_launch *)(r + 1) + r->head;
		memcpy((char *)copy + sizeof(copy->seq), (char *)l + sizeof(l->seq), sizeof(*l) - sizeof(l->seq));
		shared_set(&copy->seq, r->head + 1);
		r->head++;
	}
	spin_done(&graph_lock);
}
